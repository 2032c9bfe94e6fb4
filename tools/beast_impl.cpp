// The compiled half of Beast (BOOST_BEAST_SEPARATE_COMPILATION): every other file sees
// declarations.
#include <boost/beast/src.hpp>
