package letter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// told is a letter with something hostile in each text that others wrote.
func told() Letter {
	hostile := "</p><script>alert(1)</script>\r\nBcc: all@example\x00\u202e"
	return Letter{ID: uuid.MustParse("01a229ef-1156-7b25-96a4-01599b66704c"), Kind: StrikeOpened, At: time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC), Facts: Facts{
		Service: "weather", Name: hostile, State: "listed", Reason: hostile, By: "recorder", Next: "the next failure delists it: strike 3 of 3",
		Strikes: &Standing{Open: 2, Limit: 3, Window: 86400, Needed: 1, Words: "2 of 2 from one address"},
		Strike: &Strike{ID: uuid.UUID{1}, State: "open", OpenedAt: "2026-11-30T02:00:00.000000Z", Deliveries: 2, Evidence: []Evidence{{
			Call: uuid.UUID{2}, Recorded: "2026-11-30T02:00:00.000000Z", Source: "192.0.2.0/24", Payer: "0xCA", Method: "GET", Path: "/" + hostile,
			Status: 500, Latency: 12, Reason: "upstream_5xx", Detail: "the service failed", Answer: &Said{Snippet: strings.Repeat("a\nSubject: x", 100)},
		}}},
	}}
}

func TestCompose_SaysWhatHappenedAndWhatTheNextFailureDoes(t *testing.T) {
	t.Parallel()
	m, err := compose(told(), "https://market.example")
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "[market] weather: a strike (2 of 3)" || m.ID != "01a229ef-1156-7b25-96a4-01599b66704c" || m.Type != "strike.opened" {
		t.Errorf("subject %q, id %s, type %s", m.Subject, m.ID, m.Type)
	}
	for _, want := range []string{
		"Strikes: 2 of 3 that take it off the shelf within 24h (2 of 2 from one address)", "Next:    the next failure delists it: strike 3 of 3",
		"from 192.0.2.0/24, paid by 0xCA", "upstream_5xx, the service failed", "your service answered 500 after 12 ms",
		"GET https://market.example/api/v1/services/weather/strikes", "POST https://market.example/api/v1/services/weather/appeals",
	} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("the mail lacks %q:\n%s", want, m.Text)
		}
	}
	again, err := compose(told(), "https://market.example")
	if err != nil || again.Text != m.Text || !bytes.Equal(again.Data, m.Data) {
		t.Errorf("the same letter is another message the second time: %v", err)
	}
	var data map[string]any
	if err := json.Unmarshal(m.Data, &data); err != nil || data["appeal_url"] != "https://market.example/api/v1/services/weather/appeals" || data["service"] != "weather" {
		t.Errorf("the data: %v, %v", data, err)
	}
}

// B145: what a service or its caller wrote stays inside its line and its quotes.
func TestCompose_WhatOthersWroteMakesNoLineOfItsOwn(t *testing.T) {
	t.Parallel()
	m, err := compose(told(), "https://market.example")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(m.Text, "\n") {
		if strings.HasPrefix(line, "Bcc") || strings.HasPrefix(line, "Subject") || strings.ContainsAny(line, "\r\x00\u202e") {
			t.Errorf("a line of somebody else's: %q", line)
		}
		if strings.HasPrefix(line, "  its answer began:") && (len(line) > 300 || !strings.Contains(line, `\nSubject`)) {
			t.Errorf("the answer is shown as %q", line)
		}
	}
	if strings.ContainsAny(m.Subject, "\r\n") {
		t.Errorf("subject %q", m.Subject)
	}
}

func TestHeadlineOf_EveryKindHasItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]Kind{}
	for _, k := range Kinds() {
		text := headlineOf(Letter{Kind: k})
		if text == string(k) || seen[text] != "" {
			t.Errorf("%s and %s are told as %q", k, seen[text], text)
		}
		seen[text] = k
	}
}

// What is about an account says where the money goes, and nothing of strikes.
func TestTextOf_APayoutAndAnAddressAreToldWithoutStrikes(t *testing.T) {
	t.Parallel()
	paid := textOf(Letter{Kind: PayoutPaid, Facts: Facts{Service: "weather", Payout: &Payout{Number: 7, Network: "eip155:1", Sum: "0.975 USDC", To: "0x01", Transaction: "0xee"}}}, Data{})
	moved := textOf(Letter{Kind: PayoutAddress, Facts: Facts{Service: "weather", PaidTo: &PaidTo{Network: "eip155:1", Now: "0x01", Next: "0x02", NextAt: "2026-12-01T00:00:00.000000Z"}}}, Data{})
	for text, parts := range map[string][]string{paid: {"number 7, 0.975 USDC on eip155:1, to 0x01", "by transaction 0xee"}, moved: {"0x01 on eip155:1", "0x02 from 2026-12-01 00:00:00 UTC on"}} {
		for _, part := range parts {
			if !strings.Contains(text, part) || strings.Contains(text, "strikes") {
				t.Errorf("the mail does not say %q, or speaks of strikes:\n%s", part, text)
			}
		}
	}
}
