// The compiled half of Asio (BOOST_ASIO_SEPARATE_COMPILATION): every other file sees declarations.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
