package caller_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/caller"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
)

const (
	payerKey = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d" // a well-known development key
	nowUnix  = 1_790_000_000
)

var (
	network = chain.Network{ID: "eip155:84532", ChainID: 84532, V1Name: "base-sepolia"}
	usdc    = chain.Asset{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), Symbol: "USDC", Decimals: 6,
		EIP712Name: "USDC", EIP712Version: "2"}
	foreign  = chain.Asset{Address: common.HexToAddress("0x1234"), Symbol: "TEST", Decimals: 2, EIP712Name: "Test", EIP712Version: "1"}
	treasury = common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC")
)

func offerOf(t *testing.T, asset chain.Asset, units uint64) payment.Offer {
	t.Helper()
	o, err := payment.NewOffer(network, asset, money.FromUnits(units), treasury, 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A shop sells one resource as a market does, with the very code that checks payments there, and keeps what was asked of it.
type shop struct {
	*httptest.Server
	offers []payment.Offer
	// answer is given to a payment that fits.
	answer http.HandlerFunc

	mu    sync.Mutex
	asked []*http.Request
	sent  []string // bodies
	paid  []chain.Signed
}

func newShop(t *testing.T, answer http.HandlerFunc, offers ...payment.Offer) *shop {
	t.Helper()
	s := &shop{offers: offers, answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked, s.sent = append(s.asked, r), append(s.sent, string(body))
	s.mu.Unlock()
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	signed, code := s.judge(r)
	if code == "" {
		s.mu.Lock()
		s.paid = append(s.paid, signed)
		s.mu.Unlock()
		s.answer(w, r)
		return
	}
	challenge, err := payment.NewChallenge(payment.Resource{URL: s.URL + "/echo", Description: "Echo\x1b[31m"}, s.offers)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set(payment.HeaderRequired, challenge.Header(code))
	w.WriteHeader(http.StatusPaymentRequired)
}

// judge returns the code of a challenge, or none for a payment that fits.
func (s *shop) judge(r *http.Request) (chain.Signed, payment.Code) {
	if !payment.Sent(r.Header) {
		return chain.Signed{}, payment.Unpaid
	}
	p, err := payment.FromHeaders(r.Header)
	if err != nil {
		return chain.Signed{}, payment.CodeOfError(err)
	}
	o, err := payment.Match(p, s.offers, s.URL+"/echo", payment.Extensions())
	if err != nil {
		return chain.Signed{}, payment.CodeOfError(err)
	}
	signed, err := payment.Identify(p, o)
	if err != nil {
		return chain.Signed{}, payment.CodeOfError(err)
	}
	if err := payment.CheckTerms(signed, o, nowUnix); err != nil {
		return chain.Signed{}, payment.CodeOfError(err)
	}
	return signed, ""
}

// requests returns what was asked so far, in order.
func (s *shop) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// payments returns the payments that fitted, in order.
func (s *shop) payments() []chain.Signed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.paid)
}

func served(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(caller.HeaderCall, "call-1")
	w.Header().Set(caller.HeaderOutcome, string(call.Served))
	w.Header().Set(payment.HeaderResponse, payment.EncodeResponse(payment.SettleResponse{
		Success: true, Transaction: "0xabc", Network: network.ID, Payer: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}))
	_, _ = io.WriteString(w, "echo") //nolint:errcheck // the test sees a short body
}

func client(t *testing.T) *caller.Client {
	t.Helper()
	key, err := chain.ParseKey(payerKey)
	if err != nil {
		t.Fatal(err)
	}
	return &caller.Client{Key: key, Now: func() time.Time { return time.Unix(nowUnix, 0) }, Timeout: 10 * time.Second}
}
