package upstream

import (
	"errors"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestClient_Vet_TellsABadHostFromALookUpThatFailed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says    func(string) (dnsmessage.RCode, []string)
		url     string
		problem string // empty: no HostError
		failed  bool   // another error
	}{
		"public":                       {always(dnsmessage.RCodeSuccess, publicAddress, "2606:2800:220:1::1"), publicURL, "", false},
		"a name that does not exist":   {always(dnsmessage.RCodeNameError), publicURL, "names the host api.weather.example, which does not exist or has no address", false},
		"a name without an address":    {always(dnsmessage.RCodeSuccess), publicURL, "names the host api.weather.example, which does not exist or has no address", false},
		"an inner address":             {always(dnsmessage.RCodeSuccess, "10.0.0.1"), publicURL + ":8443/v1", "leads to 10.0.0.1, which is not a public address", false},
		"an inner address beside":      {always(dnsmessage.RCodeSuccess, publicAddress, "fd00::1"), publicURL, "leads to fd00::1, which is not a public address", false},
		"a resolver that fails":        {always(dnsmessage.RCodeServerFailure), publicURL, "", true},
		"an address, which needs none": {always(dnsmessage.RCodeServerFailure), "https://" + publicAddress, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, resolver := startDNS(t, tt.says)
			err := New(Options{Resolver: resolver}).Vet(t.Context(), tt.url)
			bad, is := errors.AsType[*HostError](err)
			switch {
			case is != (tt.problem != "") || (err != nil && !is) != tt.failed:
				t.Errorf("error = %v, want a bad host: %v, a failure: %v", err, tt.problem != "", tt.failed)
			case is && bad.Problem != tt.problem:
				t.Errorf("problem = %q, want %q", bad.Problem, tt.problem)
			}
		})
	}
}

func TestClient_Vet_InDevelopmentNobodyIsAsked(t *testing.T) {
	t.Parallel()
	names, resolver := startDNS(t, always(dnsmessage.RCodeNameError))
	err := New(Options{Resolver: resolver, AllowPrivate: true}).Vet(t.Context(), "http://weather.internal:8080")
	if err != nil || len(names.questions()) != 0 {
		t.Errorf("error = %v after %d questions", err, len(names.questions()))
	}
}
