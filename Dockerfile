# The command line and nothing else, for any other image to take it from, and to be run itself:
#
#   COPY --from=ghcr.io/sqllock/sqllock /sqllock /usr/local/bin/
#   docker run --rm -e SQLLOCK_DB ghcr.io/sqllock/sqllock ls
#
# `make image` and goreleaser build it. The folder that they give to docker build has a static binary for
# each platform, as linux/amd64/sqllock, and certificates.pem.
FROM scratch
ARG TARGETPLATFORM
COPY ${TARGETPLATFORM}/sqllock /sqllock
# Who signs for the servers that are asked for TLS; a CA of your own is named by sslrootcert or ssl-ca.
COPY certificates.pem /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
ENTRYPOINT ["/sqllock"]
