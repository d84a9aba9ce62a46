package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
)

const sellersKey = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"

// provider runs `market provider …` and returns what it prints.
func provider(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{"provider"}, args...))
	root.SetIn(strings.NewReader(in))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// sellersDoor answers like the API of sellers, and keeps what was asked. text makes what is to be signed.
func sellersDoor(t *testing.T, text func(host, address string) string) (server *httptest.Server, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	var message string
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, r.Method+" "+r.URL.Path+" "+string(body))
		var sent struct{ Address, Message, Signature string }
		_ = json.Unmarshal(body, &sent)
		switch at := r.Method + " " + r.URL.Path; {
		case at == "POST /api/v1/auth/challenge":
			message = text(r.Host, sent.Address)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
		case at == "POST /api/v1/auth/session":
			signature, err := chain.ParseSignature(hexutil.MustDecode(sent.Signature))
			who, _ := chain.Recover(chain.TextDigest(message), signature)
			if err != nil || sent.Message != message || !strings.Contains(message, who.Hex()) {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"code":"unauthorized","detail":"the signature is another's"}`)
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"token":"mkses_of-the-test","expires_at":"2026-11-30T12:00:00.000000Z","account":{"plan":"free"}}`)
		case r.Header.Get("Authorization") != "Bearer mkses_of-the-test" && r.Header.Get("Authorization") != "Bearer mkk_of-the-test":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"unauthorized","detail":"the token is none of ours, or it has ended"}`)
		case at == "POST /api/v1/provider/keys":
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":"01a2","name":"deploys","token":"mkk_of-the-test","scopes":["services:write"]}`)
		case at == "POST /api/v1/services":
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"slug":"weather","secret":{"value":"mks_once"}}`)
		case at == "PATCH /api/v1/services/weather":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"code":"plan_limit","detail":"the free plan has 3 listings; pro has 20"}`)
		case at == "GET /api/v1/provider/services":
			_, _ = io.WriteString(w, `{"items":[{"slug":"weather","state":"listed","endpoints":[{},{}]}],"next_cursor":""}`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(server.Close)
	return server, asked
}

func signInText(host, address string) string {
	return fmt.Sprintf("%s wants you to sign in with your Ethereum account:\n%s\n\nSign in to sell.\n\nURI: http://%s\nVersion: 1\nChain ID: 1\nNonce: abcdefgh", host, address, host)
}

func TestProvider_SignsInWithAKeyFileAndMakesAnAPIKey(t *testing.T) {
	server, asked := sellersDoor(t, signInText)
	file := filepath.Join(t.TempDir(), "wallet.key")
	if err := os.WriteFile(file, []byte("0x"+sellersKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MARKET_PUBLIC_URL", server.URL)
	t.Setenv("MARKET_PROVIDER_KEY", "")
	t.Setenv("MARKET_PROVIDER_TOKEN", "")
	out, err := provider(t, "", "sign-in", "--key-file", file)
	var opened openedSession
	if err != nil || json.Unmarshal([]byte(out), &opened) != nil || opened.Token != "mkses_of-the-test" {
		t.Errorf("%v, %s", err, out)
	}
	*asked = nil
	out, err = provider(t, "", "sign-in", "--key-file", file, "--new-key", "deploys", "--scope", "services:write")
	var made shownKey
	if err != nil || json.Unmarshal([]byte(out), &made) != nil || made.Token != "mkk_of-the-test" {
		t.Errorf("%v, %s", err, out)
	}
	if last := (*asked)[len(*asked)-1]; last != "DELETE /api/v1/auth/session " {
		t.Errorf("the session stays open: %q", *asked)
	}
	if (*asked)[2] != `POST /api/v1/provider/keys {"name":"deploys","scopes":["services:write"]}` {
		t.Errorf("asked for %q", (*asked)[2])
	}
}

func TestProvider_ListsAndChangesServicesByTheDocumentOfTheAPI(t *testing.T) {
	server, asked := sellersDoor(t, signInText)
	t.Setenv("MARKET_PUBLIC_URL", server.URL)
	t.Setenv("MARKET_PROVIDER_TOKEN", "mkk_of-the-test")
	out, err := provider(t, `{"slug": "weather", "name": "a<b"}`, "services", "create", "-")
	if err != nil || !strings.Contains(out, "mks_once") || (*asked)[0] != `POST /api/v1/services {"slug":"weather","name":"a<b"}` {
		t.Errorf("%v, %s, %q", err, out, *asked)
	}
	if out, err = provider(t, "", "services"); err != nil || !strings.Contains(out, `"weather"`) {
		t.Errorf("%v, %s", err, out)
	}
	if _, err = provider(t, "", "services", "retire", "weather", "--yes"); err != nil || (*asked)[len(*asked)-1] != "DELETE /api/v1/services/weather " {
		t.Errorf("%v, %q", err, *asked)
	}
	for name, tt := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"what a plan does not have":  {`{}`, []string{"services", "edit", "weather", "-"}, "the free plan has 3 listings; pro has 20 (plan_limit)"},
		"a file that is no JSON":     {"{\n\"a\":\n}", []string{"services", "create", "-"}, "- is no JSON: line 3"},
		"a file that is not there":   {"", []string{"services", "create", "/nothing"}, "no such file"},
		"what is for good":           {"", []string{"services", "retire", "weather"}, "--yes"},
		"over a network in the open": {"", []string{"services", "--url", "http://market.example"}, "a token goes over https, or to this machine"},
	} {
		if out, err := provider(t, tt.in, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%s: %v, %q; want an error with %q", name, err, out, tt.want)
		}
	}
	t.Setenv("MARKET_PROVIDER_TOKEN", "")
	t.Setenv("MARKET_PROVIDER_KEY", "")
	if _, err := provider(t, "", "services"); err == nil || !strings.Contains(err.Error(), "nobody is signed in") {
		t.Errorf("without anything: %v", err)
	}
}

// A server gets no other signature than that of a sign-in to itself: not for another site, not for another wallet, and not for a payment.
func TestProvider_SignsNothingButASignInToTheServerThatItAsks(t *testing.T) {
	t.Setenv("MARKET_PROVIDER_KEY", sellersKey)
	t.Setenv("MARKET_PROVIDER_TOKEN", "")
	for name, text := range map[string]func(host, address string) string{
		"another site":   func(_, address string) string { return signInText("bank.example", address) },
		"another wallet": func(host, _ string) string { return signInText(host, "0x00000000000000000000000000000000000000AA") },
		"anything else":  func(string, string) string { return "transfer everything" },
	} {
		server, asked := sellersDoor(t, text)
		if _, err := provider(t, "", "sign-in", "--url", server.URL); err == nil || !strings.Contains(err.Error(), "nothing was signed") || len(*asked) != 1 {
			t.Errorf("%s: %v, asked %q", name, err, *asked)
		}
	}
	key, err := chain.ParseKey(sellersKey)
	if err != nil {
		t.Fatal(err)
	}
	text := signInText("market.example", key.Address().Hex())
	out, err := provider(t, text+"\r\n", "sign")
	if err != nil {
		t.Fatal(err)
	}
	signature, err := chain.ParseSignature(hexutil.MustDecode(strings.TrimSpace(out)))
	if who, _ := chain.Recover(chain.TextDigest(text), signature); err != nil || who != key.Address() {
		t.Errorf("the signature is that of %s, %v", who, err)
	}
	if _, err := provider(t, "transfer everything", "sign"); err == nil || !strings.Contains(err.Error(), "it is not signed") {
		t.Errorf("another text: %v", err)
	}
}
