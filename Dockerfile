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
 && apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin \
 && useradd --system --uid 10001 --user-group --no-create-home --home-dir / --shell /usr/sbin/nologin outboxd
COPY --from=build /src/build/release/outboxd /usr/bin/outboxd
# By number: Kubernetes' runAsNonRoot does not read /etc/passwd.
USER 10001:10001
# Alive, not ready: an orchestrator must not restart what only waits for its database. For admin.listen on
# another port say --no-healthcheck and ask it yourself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=90s --retries=3 CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/9464 && printf 'GET /livez HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
# SIGTERM drains: what runs is finished and recorded, within worker.drain_timeout.
STOPSIGNAL SIGTERM
# A tool's secrets come as files (CREDENTIALS_DIRECTORY, ${file:…}) or environment (${env:…}).
ENTRYPOINT ["/usr/bin/outboxd"]
CMD ["run", "-c", "/etc/outboxd/outboxd.yaml"]
