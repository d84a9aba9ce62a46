# The server and nothing else; the database is given by MARKET_DATABASE_URL.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=1 go build -trimpath -ldflags='-s -w' -o /market ./cmd/market

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /var/lib/market --create-home market
COPY --from=build /market /usr/local/bin/market
USER market
ENV MARKET_LISTEN=0.0.0.0:4021 MARKET_OPS_LISTEN=0.0.0.0:4022
EXPOSE 4021 4022
ENTRYPOINT ["market"]
CMD ["serve"]
