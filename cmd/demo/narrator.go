package main

import (
	"fmt"
	"io"
	"strings"

	"market/internal/devnet"
)

// A narrator tells the story in words that a newcomer understands.
type narrator struct {
	quiet bool
	out   io.Writer
}

func (n narrator) line(format string, args ...any) {
	if !n.quiet {
		fmt.Fprintf(n.out, format+"\n", args...)
	}
}

func (n narrator) opening() {
	n.line("market: APIs that are paid for call by call, over HTTP 402 (x402).")
	n.line("Starting a database, a development chain with a test dollar, two sample services and the marketplace …")
	n.line("")
}

func (n narrator) world(w *world) {
	n.line("Ready.")
	n.line("  marketplace  %s", w.app.URL())
	n.line("  chain        %s, a private stand-in for Base Sepolia; its test dollar is USDC at %s", devnet.NetworkID, devnet.TokenAddress())
	n.line("  caller       %s, a program with a wallet", w.caller)
	n.line("  treasury     %s, the marketplace's wallet: payments go in, refunds come out", w.treasury)
	n.line("")
}

func (n narrator) before(s *story) {
	n.line("Before: the caller has $%s, the treasury $%s (read from the chain).", s.Before.Caller, s.Before.Treasury)
	n.line("")
}

func (n narrator) served(e episode) {
	n.line("1. A call that is served")
	n.line("   asked       POST %s", e.URL)
	n.line("   quote       402 Payment Required: $%s to %s", e.PriceUSD, e.PayTo)
	n.line("   payment     the caller signed an authorization of $%s and sent the request again; it needs no gas for that", e.PriceUSD)
	n.line("   settlement  transaction %s moved the money, before the service was asked", e.Settlement)
	n.line("   answer      %d %s", e.Status, strings.TrimSpace(e.Answer))
	n.line("   record      %s", e.CallURL)
	n.line("")
}

func (n narrator) failed(e episode) {
	n.line("2. A call that fails")
	n.line("   asked       GET %s", e.URL)
	n.line("   quote       402 Payment Required: $%s to %s", e.PriceUSD, e.PayTo)
	n.line("   settlement  transaction %s moved the money", e.Settlement)
	n.line("   answer      %d: the service failed (%s), so the caller does not pay", e.Status, e.Reason)
}

func (n narrator) refunded(e episode) {
	if e.RefundTransaction == "" {
		n.line("   refund      not confirmed yet: %s", e.RefundState)
	} else {
		n.line("   refund      transaction %s sent the whole $%s back", e.RefundTransaction, e.PriceUSD)
	}
	n.line("   record      %s", e.CallURL)
	n.line("")
}

func (n narrator) after(s *story) {
	n.line("After: the caller has $%s, the treasury $%s.", s.After.Caller, s.After.Treasury)
	n.line("  caller    %s - %s (served) - %s (failed) + %s (refund) = %s", s.Before.Caller, s.Served.PriceUSD, s.Refunded.PriceUSD,
		s.Refunded.PriceUSD, s.After.Caller)
	n.line("  treasury  %s + %s (served) + %s (failed) - %s (refund) = %s", s.Before.Treasury, s.Served.PriceUSD, s.Refunded.PriceUSD,
		s.Refunded.PriceUSD, s.After.Treasury)
	if !s.AddsUp {
		n.line("  This does NOT add up.")
	}
	n.line("")
}

func (n narrator) tryYourself(w *world) {
	url := w.app.URL()
	n.line("Still serving. Look at it with a browser: %s", url)
	n.line("Or try, in another terminal:")
	n.line("")
	n.line("  # what is for sale")
	n.line("  curl -s %s/api/v1/services", url)
	n.line("")
	n.line("  # what a call costs: 402, with the terms in the PAYMENT-REQUIRED header")
	n.line("  curl -i -X POST %s/s/weather/v1/current -H 'Content-Type: application/json' -d '{\"city\":\"Lima\"}'", url)
	n.line("")
	n.line("  # one of the five free trial calls of today")
	n.line("  curl -i -X POST %s/try/weather/v1/current -H 'Content-Type: application/json' -d '{\"city\":\"Lima\"}'", url)
	n.line("")
	n.line("  # pay for it with the caller's wallet (a key of this demo's chain, worth nothing elsewhere)")
	n.line("  MARKET_CALLER_KEY=%s go run ./cmd/market call %s/s/weather/v1/current -X POST -d '{\"city\":\"Quito\"}' --max-usd 0.01", w.callerKey, url)
	n.line("")
	n.line("  # pay for a call that fails, and see the refund. The service rests for %s after each failure (60s outside this", cooldown)
	n.line("  # demo), and the third failure within 24 hours takes it off the shelf; the story above was the first")
	n.line("  MARKET_CALLER_KEY=%s go run ./cmd/market call %s/s/oracle/v1/answer --max-usd 0.01", w.callerKey, url)
	n.line("")
	n.line("  # as an admin: the strikes that the failures left")
	n.line("  curl -s -H 'Authorization: Bearer %s' %s/api/v1/admin/strikes", w.adminToken, url)
	n.line("")
	n.line("Ctrl-C stops it, and everything it made is gone.")
}
