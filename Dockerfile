# docker build -t outboxd . && docker run -v ./outboxd.yaml:/etc/outboxd/outboxd.yaml:ro outboxd
ARG DEBIAN=debian:bookworm-slim

FROM ${DEBIAN} AS build
WORKDIR /src
# The packages change less often than the sources: a layer of their own.
COPY dev ./
RUN ./dev packages
COPY . .
RUN ./dev build && strip build/release/outboxd

FROM ${DEBIAN}
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    ca-certificates libpqxx-6.4 libfmt9 libyaml-cpp0.7 libprometheus-cpp-core1.0 libssl3 zlib1g \
    libsystemd0 libre2-9 libboost-json1.81.0 libboost-url1.81.0 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home --home-dir / --shell /usr/sbin/nologin outboxd
COPY --from=build /src/build/release/outboxd /usr/bin/outboxd
USER outboxd
# SIGTERM drains: what runs is finished and recorded, within worker.drain_timeout.
STOPSIGNAL SIGTERM
# A tool's secrets come as files (CREDENTIALS_DIRECTORY, ${file:…}) or environment (${env:…}).
ENTRYPOINT ["/usr/bin/outboxd"]
CMD ["run", "-c", "/etc/outboxd/outboxd.yaml"]
