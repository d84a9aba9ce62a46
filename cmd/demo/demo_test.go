package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"testing"
	"time"
)

var hashForm = regexp.MustCompile(`^0x[0-9a-f]{64}$`)

// The demo is the first thing that anybody sees of us; it runs here as it runs there, but for where it prints.
func TestDemo_OnceServesOneCallAndRefundsTheOther(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := run(ctx, &out, "127.0.0.1:0", true, true); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	var s story
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	for what, hash := range map[string]string{
		"settlement of the served call": s.Served.Settlement, "settlement of the failed call": s.Refunded.Settlement,
		"refund of the failed call": s.Refunded.RefundTransaction,
	} {
		if !hashForm.MatchString(hash) {
			t.Errorf("%s: %q is no transaction", what, hash)
		}
	}
	if !s.AddsUp || s.Served.Status != 200 || s.Refunded.Status != 502 {
		t.Errorf("the story is %s", out.Bytes())
	}
}
