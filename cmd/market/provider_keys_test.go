package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestPrintKeys_OnlyWhatDoesSomethingIsGood(t *testing.T) {
	t.Parallel()
	const made = `"scopes": ["services:read"], "created_at": "2026-11-01T00:00:00Z"`
	var out strings.Builder
	err := printKeys(&out, []json.RawMessage{
		json.RawMessage(`{"id": "1", "name": "for-ever", ` + made + `}`),
		json.RawMessage(`{"id": "2", "name": "for-a-while", "expires_at": "2026-11-30T12:00:00.000001Z", ` + made + `}`),
		json.RawMessage(`{"id": "3", "name": "past", "expires_at": "2026-11-30T12:00:00Z", ` + made + `}`),
		json.RawMessage(`{"id": "4", "name": "taken", "revoked_at": "2026-11-02T00:00:00Z", ` + made + `}`),
	}, time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"for-ever": " good ", "for-a-while": " good ", "past": " ended ", "taken": " revoked 2026-11-02 00:00 UTC "} {
		found := false
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, name+" ") {
				found = strings.Contains(line, want)
			}
		}
		if !found {
			t.Errorf("%s is not%sin\n%s", name, want, out.String())
		}
	}
}
