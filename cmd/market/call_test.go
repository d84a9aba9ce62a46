package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/caller"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
)

const problemOfFailure = `{"code":"upstream_5xx","detail":"The service answered 500.","charged":false,` +
	`"call":{"id":"c-1","url":"/api/v1/calls/c-1"},"refund":{"state":"owed","transaction":null}}`

// market is a server that asks for 0.002 USD and answers a payment as the test says. Reading a call gives a confirmed refund.
func market(t *testing.T, answer http.HandlerFunc) (server *httptest.Server, payments *atomic.Int32) {
	t.Helper()
	asset := chain.Asset{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), Decimals: 6, EIP712Name: "USDC", EIP712Version: "2"}
	offer, err := payment.NewOffer(chain.Network{ID: "eip155:84532", ChainID: 84532}, asset, money.FromUnits(2000), common.HexToAddress("0x1234"), 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	challenge, err := payment.NewChallenge(payment.Resource{URL: "https://market.test/s/echo", Description: "Echo"}, []payment.Offer{offer})
	if err != nil {
		t.Fatal(err)
	}
	payments = new(atomic.Int32)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/calls/c-1" {
			_, _ = io.WriteString(w, `{"id":"c-1","state":"failed","outcome":"failed","reason":"upstream_bad_response","refund":{"state":"confirmed","transaction":"0xrefund"}}`) //nolint:errcheck // seen by the test
			return
		}
		if !payment.Sent(r.Header) {
			w.Header().Set(payment.HeaderRequired, challenge.Header(payment.Unpaid))
			w.WriteHeader(http.StatusPaymentRequired)
			return
		}
		if _, err := payment.FromHeaders(r.Header); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		payments.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server, payments
}

func answer(status int, outcome call.Outcome, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set(caller.HeaderCall, "c-1")
		w.Header().Set(caller.HeaderOutcome, string(outcome))
		w.Header().Set(payment.HeaderResponse, payment.EncodeResponse(payment.SettleResponse{Success: true, Transaction: "0xpaid", Network: "eip155:84532"}))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) //nolint:errcheck // seen by the test
	}
}

// streamed answers in two pieces and says at the end how the call ended, or breaks off with a panic.
func streamed(end any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(caller.HeaderCall, "c-1")
		w.Header().Set("Trailer", caller.HeaderOutcome)
		w.Header().Set(payment.HeaderResponse, payment.EncodeResponse(payment.SettleResponse{Success: true, Transaction: "0xpaid", Network: "eip155:84532"}))
		for _, piece := range []string{"one", "two"} {
			_, _ = io.WriteString(w, piece)           //nolint:errcheck // seen by the test
			_ = http.NewResponseController(w).Flush() //nolint:errcheck // as above
		}
		if end != nil {
			panic(end)
		}
		w.Header().Set(caller.HeaderOutcome, string(call.Served))
	}
}

func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the command and returns stdout, stderr and the error.
func run(in io.Reader, args ...string) (string, string, error) {
	var out, tell bytes.Buffer
	cmd := newCallCommand()
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(&out)
	cmd.SetErr(&tell)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), tell.String(), err
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if coded, ok := errors.AsType[*exitError](err); ok {
		return coded.code
	}
	return exitFailure
}

func TestCall_ExitCodeSaysWhatTheCallCameTo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer http.HandlerFunc
		args   []string
		in     string
		code   int
		paid   int32
		out    string
		tells  []string
	}{
		"served": {answer(200, call.Served, "text/plain", "the answer"), []string{"--yes"}, "", 0, 1, "the answer",
			[]string{"0.002 USD", "0xpaid", "outcome  served"}},
		"failed, and the refund was waited for": {answer(502, call.Failed, "application/problem+json", problemOfFailure), []string{"--max-usd", "0.002"}, "",
			exitFailed, 1, problemOfFailure, []string{"upstream_5xx: The service answered 500.", "refund   owed", "confirmed, transaction 0xrefund"}},
		"failed, and the refund was not waited for": {answer(502, call.Failed, "application/problem+json", problemOfFailure), []string{"--yes", "--wait", "0"}, "",
			exitFailed, 1, problemOfFailure, []string{"refund   owed", "/api/v1/calls/c-1"}},
		"failed, with the service's own body": {answer(500, call.Failed, "text/plain", "oops"), []string{"--yes"}, "",
			exitFailed, 1, "oops", []string{"confirmed, transaction 0xrefund"}},
		"refused": {answer(422, call.Refused, "application/problem+json", `{"code":"rejected_by_service"}`), []string{"--yes"}, "",
			exitRefused, 1, `{"code":"rejected_by_service"}`, []string{"rejected_by_service"}},
		"pending": {answer(503, "", "application/problem+json", `{"code":"settlement_pending","charged":"pending","call":{"id":"c-1","url":"/api/v1/calls/c-1"}}`),
			[]string{"--yes"}, "", exitPending, 1, `{"code":"settlement_pending","charged":"pending","call":{"id":"c-1","url":"/api/v1/calls/c-1"}}`,
			[]string{"do not pay again", "/api/v1/calls/c-1", "--payment ey"}},
		"no answer to the payment": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"--yes", "-X", "POST"}, "",
			exitPending, 1, "", []string{"do not pay again", "--payment ey"}},
		"a stream": {streamed(nil), []string{"--yes"}, "", 0, 1, "onetwo", []string{"0xpaid", "outcome  served"}},
		"a stream that breaks off": {streamed(http.ErrAbortHandler), []string{"--yes"}, "", exitFailed, 1, "onetwo",
			[]string{"broken   read the stream", "outcome  failed", "upstream_bad_response", "confirmed, transaction 0xrefund"}},
		"a person says yes": {answer(200, call.Served, "text/plain", "the answer"), nil, "Yes\n", 0, 1, "the answer",
			[]string{"price    0.002 USD", "for      Echo", "Pay? [y/N]"}},
		"a person says no":         {answer(200, call.Served, "text/plain", ""), nil, "n\n", exitFailure, 0, "", []string{"Pay? [y/N]"}},
		"a person says nothing":    {answer(200, call.Served, "text/plain", ""), nil, "", exitFailure, 0, "", []string{"Pay? [y/N]"}},
		"above the limit":          {answer(200, call.Served, "text/plain", ""), []string{"--max-usd", "0.001999"}, "y\n", exitFailure, 0, "", nil},
		"above the limit with yes": {answer(200, call.Served, "text/plain", ""), []string{"--yes", "--max-usd", "0.001"}, "", exitFailure, 0, "", nil},
		"a limit of nothing":       {answer(200, call.Served, "text/plain", ""), []string{"--max-usd", "0"}, "y\n", exitFailure, 0, "", nil},
		"a limit that is no price": {answer(200, call.Served, "text/plain", ""), []string{"--max-usd", "1e999999999"}, "y\n", exitFailure, 0, "", nil},
		"a header that is none":    {answer(200, call.Served, "text/plain", ""), []string{"--yes", "-H", "nothing"}, "", exitFailure, 0, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, payments := market(t, test.answer)
			args := append([]string{server.URL + "/s/echo", "--key-file", keyFile(t)}, test.args...)
			out, tell, err := run(strings.NewReader(test.in), args...)
			if got := codeOf(err); got != test.code {
				t.Errorf("exit code = %d (%v), want %d; stderr:\n%s", got, err, test.code, tell)
			}
			if out != test.out {
				t.Errorf("stdout = %q, want %q", out, test.out)
			}
			if got := payments.Load(); got != test.paid {
				t.Errorf("%d payments, want %d", got, test.paid)
			}
			for _, part := range test.tells {
				if !strings.Contains(tell, part) {
					t.Errorf("stderr lacks %q:\n%s", part, tell)
				}
			}
		})
	}
}

func TestCall_WithoutATerminalNobodySaysYes(t *testing.T) {
	t.Parallel()
	server, payments := market(t, answer(200, call.Served, "text/plain", ""))
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	if _, err := typed.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	if err := typed.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = run(in, server.URL, "--key-file", keyFile(t))
	if codeOf(err) != exitFailure || err == nil || !strings.Contains(err.Error(), "--yes or --max-usd") || payments.Load() != 0 {
		t.Errorf("error = %v, %d payments, want advice and none", err, payments.Load())
	}
}

func TestCall_SendsABodyAsAPost(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	server, _ := market(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r
		answer(200, call.Served, "text/plain", "ok")(w, r)
	})
	if _, _, err := run(nil, server.URL, "--yes", "--key-file", keyFile(t), "-d", `{"city":"Lima"}`, "-H", "Accept-Language: es"); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Accept-Language") != "es" {
		t.Errorf("request = %s with %v", r.Method, r.Header)
	}
}

func TestCall_SendsTheSamePaymentAgain(t *testing.T) {
	t.Parallel()
	var sent [2]string
	var n atomic.Int32
	server, payments := market(t, func(w http.ResponseWriter, r *http.Request) {
		i := n.Add(1) - 1
		sent[i] = r.Header.Get(payment.HeaderSignature)
		if i == 0 {
			panic(http.ErrAbortHandler)
		}
		answer(200, call.Served, "text/plain", "at last")(w, r)
	})
	_, tell, err := run(nil, server.URL, "--yes", "-X", "POST", "--key-file", keyFile(t))
	if codeOf(err) != exitPending {
		t.Fatalf("exit code = %d (%v)", codeOf(err), err)
	}
	_, rest, _ := strings.Cut(tell, "--payment ")
	header, _, _ := strings.Cut(rest, "\n")
	out, _, err := run(nil, server.URL, "-X", "POST", "--payment", header)
	if err != nil || out != "at last" || payments.Load() != 2 || sent[0] != sent[1] {
		t.Errorf("answer %q, %v after %d payments, the same one: %v", out, err, payments.Load(), sent[0] == sent[1])
	}
}

func TestCall_NeedsAKeyAndAURL(t *testing.T) {
	t.Setenv("MARKET_CALLER_KEY", "")
	for name, args := range map[string][]string{
		"no key":         {"http://127.0.0.1:1/"},
		"no key file":    {"http://127.0.0.1:1/", "--key-file", filepath.Join(t.TempDir(), "missing")},
		"no URL":         {},
		"a relative URL": {"/s/echo", "--key-file", keyFile(t)},
		"another kind":   {"ftp://127.0.0.1/", "--key-file", keyFile(t)},
		"nobody answers": {"http://127.0.0.1:1/", "--key-file", keyFile(t), "--yes"},
	} {
		if _, _, err := run(nil, args...); codeOf(err) != exitFailure {
			t.Errorf("%s: error = %v, want exit code %d", name, err, exitFailure)
		}
	}
	t.Setenv("MARKET_CALLER_KEY", "secret-that-is-no-key")
	if _, _, err := run(nil, "http://127.0.0.1:1/"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want one that does not repeat the key", err)
	}
}
