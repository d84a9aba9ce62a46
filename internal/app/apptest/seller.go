package apptest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
)

// A Seller is somebody who signed in with a wallet, and uses the API with the session or a key.
type Seller struct {
	Wallet chain.Key
	Token  string

	world *World
}

// SignIn signs in with a wallet as a program does: it asks for the text, signs it, and gets a session for it.
func (w *World) SignIn(t testing.TB, wallet chain.Key) *Seller {
	t.Helper()
	s := &Seller{Wallet: wallet, world: w}
	made := s.Want(t, http.StatusOK, http.MethodPost, "/api/v1/auth/challenge", map[string]any{"address": wallet.Address().Hex()})
	text := str(made["message"])
	opened := s.Want(t, http.StatusCreated, http.MethodPost, "/api/v1/auth/session", map[string]any{"message": text, "signature": SignText(t, wallet, text)})
	s.Token = str(opened["token"])
	return s
}

// SignText signs a text as wallets do, in hexadecimal.
func SignText(t testing.TB, wallet chain.Key, text string) string {
	t.Helper()
	signature, err := wallet.SignText(text)
	if err != nil {
		t.Fatal(err)
	}
	return hexutil.Encode(signature.Bytes())
}

// Ask sends a request with the seller's token; nil is no body.
func (s *Seller) Ask(t testing.TB, method, path string, body any) Answer {
	t.Helper()
	a := Asking{Method: method, URL: s.world.URL + path, Header: http.Header{}}
	if s.Token != "" {
		a.Header.Set("Authorization", "Bearer "+s.Token)
	}
	if body != nil {
		var text bytes.Buffer
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			t.Fatal(err)
		}
		a.Body = text.String()
	}
	return s.world.Send(t, a, "")
}

// Want is Ask for an answer with a status.
func (s *Seller) Want(t testing.TB, status int, method, path string, body any) map[string]any {
	t.Helper()
	answer := s.Ask(t, method, path, body)
	if answer.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, answer.Status, answer.Body, status)
	}
	return answer.JSON
}
