package server

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"market/internal/letter"
	"market/internal/upstream"
)

// A provider is told of a delivery what it can read of it, member by member: all but the process that asked.
func TestLetters_EvidenceHasTheMembersThatAProviderReads(t *testing.T) {
	t.Parallel()
	for told, read := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[letter.Evidence](): reflect.TypeFor[evidenceView](),
		reflect.TypeFor[letter.Said]():     reflect.TypeFor[saidView](),
		reflect.TypeFor[letter.Others]():   reflect.TypeFor[othersView](),
	} {
		got, always := membersOf(told)
		want, wantAlways := membersOf(read)
		want = without(want, []string{"replica"})
		if !slices.Equal(got, want) || !slices.Equal(always, wantAlways) {
			t.Errorf("%s has %q, %s has %q", told, got, read, want)
		}
	}
}

func TestCreateService_AWebhookAtABadHostIsAProblemOfItsField(t *testing.T) {
	t.Parallel()
	const hook = "https://weather.example/hook"
	l := &lookOut{says: &upstream.HostError{Problem: "leads to 10.0.0.1, which is not a public address"}, of: hook}
	answer, p := post(t, l, strings.TrimSuffix(listing, "}")+`,"notices":{"webhook":"`+hook+`"}}`)
	if answer.Code != http.StatusUnprocessableEntity || len(p.Fields) != 1 || p.Fields[0].Name != "/notices/webhook" {
		t.Errorf("%d %s, want 422 about /notices/webhook", answer.Code, answer.Body)
	}
}
