package app_test

import (
	"net/http"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

// A hostedWorld has one listed service, and facilitators that are all somebody else's; no gas key.
type hostedWorld struct {
	*apptest.World
	service *apptest.Service
	ask     apptest.Asking
}

func newHostedWorld(t *testing.T, local bool, upstream http.HandlerFunc, all ...*apptest.Hosted) *hostedWorld {
	t.Helper()
	return newHostedWorldWith(t, apptest.Setup{Burst: 600}, []string{apptest.HostedFile(t, local, all...)}, local, upstream, all...)
}

func newHostedWorldWith(t *testing.T, setup apptest.Setup, env []string, local bool, upstream http.HandlerFunc, all ...*apptest.Hosted) *hostedWorld {
	t.Helper()
	if !local {
		env = append(env, "MARKET_GAS_KEY=")
	}
	w := apptest.StartWith(t, setup, env...)
	for _, h := range all {
		h.Open(t, w)
	}
	s := w.List(t, "hosted", upstream, nil)
	return &hostedWorld{World: w, service: s, ask: apptest.Ask(s.URL)}
}

// startFails returns why a program does not start.
func startFails(t *testing.T, env ...string) string {
	t.Helper()
	err := apptest.StartFails(t, env...)
	if err == nil {
		t.Fatal("it started")
	}
	return strings.TrimSpace(err.Error())
}
