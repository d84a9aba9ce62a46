package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/app/apptest"
)

// from returns an asking that comes from another address: the test's own is a configured proxy.
func from(a apptest.Asking, address string) apptest.Asking {
	a.Header = http.Header{"X-Forwarded-For": {address}}
	return a
}

// B57: a kept answer goes to who proves to be its caller, and to nobody else.
func TestRedeem_TheAnswerGoesToItsCallerAlone(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8")
	s := w.List(t, "kept", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	text, payer := apptest.NewKey(t)
	w.Mint(t, payer.Address(), 10*apptest.PriceUnits)
	const home, elsewhere = "198.51.100.7", "203.0.113.9"
	header := w.Sign(t, payer, terms)
	first := w.Send(t, from(ask, home), header)
	if first.Status != http.StatusOK {
		t.Fatalf("the call: %d %s", first.Status, first.Body)
	}
	given := func(what string, a apptest.Answer) {
		t.Helper()
		if a.Status != http.StatusOK || string(a.Body) != string(first.Body) || a.Call() != first.Call() || a.Header.Get("PAYMENT-RESPONSE") == "" {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	refused := func(what string, a apptest.Answer, status int, code string) {
		t.Helper()
		expect(t, what, a, status, code)
		if a.JSON["charged"] != true || a.Call() != first.Call() || a.Header.Get("PAYMENT-RESPONSE") == "" {
			t.Errorf("%s: it does not say what became of the call: %s", what, a.Body)
		}
	}

	given("from the same address", w.Send(t, from(ask, home), header))
	refused("from another address", w.Send(t, from(ask, elsewhere), header), http.StatusConflict, "proof_required")

	signedIn := from(ask, elsewhere)
	signedIn.Header.Set("SIGN-IN-WITH-X", signIn(t, w.URL, text, payer.Address().Hex()))
	given("signed in as the payer", w.Send(t, signedIn, header))
	refused("the same sign-in again", w.Send(t, signedIn, header), http.StatusConflict, "proof_required")
	strangerText, stranger := apptest.NewKey(t)
	signedIn.Header.Set("SIGN-IN-WITH-X", signIn(t, w.URL, strangerText, stranger.Address().Hex()))
	refused("signed in as somebody else", w.Send(t, signedIn, header), http.StatusConflict, "proof_required")

	w.Shift(t, 10*time.Minute)
	refused("from the same address, later", w.Send(t, from(ask, home), header), http.StatusConflict, "proof_required")
	w.Shift(t, 24*time.Hour)
	refused("a day later", w.Send(t, from(ask, home), header), http.StatusGone, "answer_expired")
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times", s.Asked())
	}
}

// signIn is what a wallet sends in SIGN-IN-WITH-X: an EIP-4361 text under its signature.
func signIn(t *testing.T, url, key, address string) string {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	issued := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	_, nonceKey := apptest.NewKey(t)
	nonce := strings.ToLower(nonceKey.Address().Hex()[2:34])
	text := fmt.Sprintf("%s wants you to sign in with your Ethereum account:\n%s\n\n\nURI: %s\nVersion: 1\nChain ID: 84532\nNonce: %s\nIssued At: %s",
		host, address, url+"/", nonce, issued)
	private, err := crypto.HexToECDSA(key)
	if err != nil {
		t.Fatal(err)
	}
	digest := crypto.Keccak256([]byte(fmt.Sprintf("\x19Ethereum Signed Message:\n%d%s", len(text), text)))
	signature, err := crypto.Sign(digest, private)
	if err != nil {
		t.Fatal(err)
	}
	signature[64] += 27
	header, err := json.Marshal(map[string]any{
		"domain": host, "uri": url + "/", "version": "1", "nonce": nonce, "issuedAt": issued,
		"address": address, "chainId": "eip155:84532", "type": "eip191", "signature": hexutil.Encode(signature),
	})
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(header)
}

// B61: the nonce is the key, and the identifier a name for it: it redeems from anywhere, and a second authorization under it is not taken.
func TestRedeem_AnIdentifierNamesOnePayment(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8")
	s := w.List(t, "named", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	payer, other := w.Payer(t, 10*apptest.PriceUnits), w.Payer(t, 10*apptest.PriceUnits)
	const name = "pay_0123456789abcdef"
	header := w.SignNamed(t, payer, terms, name)
	first := w.Send(t, from(ask, "198.51.100.7"), header)
	if first.Status != http.StatusOK {
		t.Fatalf("the call: %d %s", first.Status, first.Body)
	}
	if a := w.Send(t, from(ask, "203.0.113.9"), header); a.Status != http.StatusOK || a.Call() != first.Call() {
		t.Errorf("the same payment with its name from elsewhere: %d %s", a.Status, a.Body)
	}
	second := w.Send(t, from(ask, "198.51.100.7"), w.SignNamed(t, payer, terms, name))
	expect(t, "another authorization under the same name", second, http.StatusConflict, "payment_reused")
	if second.Call() != first.Call() || w.Balance(t, payer.Address()) != 9*apptest.PriceUnits {
		t.Errorf("it is call %s, and the payer has %d units; want call %s and one price less", second.Call(), w.Balance(t, payer.Address()), first.Call())
	}
	if a := w.Send(t, from(ask, "198.51.100.7"), w.SignNamed(t, other, terms, name)); a.Status != http.StatusOK || a.Call() == first.Call() {
		t.Errorf("the same name of another payer: %d, call %s", a.Status, a.Call())
	}
	if s.Asked() != 2 {
		t.Errorf("the service was asked %d times, want twice", s.Asked())
	}
}
