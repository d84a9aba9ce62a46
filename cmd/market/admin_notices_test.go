package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
)

const threeNotices = `{"items":[{"kind":"source_out","subject":"facilitator/x` + escape + `","state":"open","what":"facilitator x refuses us` + escape + `","raised_at":"2026-11-30T11:20:00.000000Z",
	"messages":[{"phase":"raised","channel":null,"attempts":3,"next_at":"2026-11-30T12:20:00.000000Z","given_up_at":null}]},
	{"kind":"outage","subject":"fleet","state":"settled","what":"failures are taken for an outage","raised_at":"2026-11-29T11:20:00.000000Z",
	"messages":[{"phase":"raised","channel":"mail","attempts":0,"next_at":null,"given_up_at":null},{"phase":"recovered","channel":"webhook","attempts":1,"next_at":null,"given_up_at":null}]},
	{"kind":"test","subject":"01a2","state":"given_up","what":"a test","raised_at":"2026-11-28T11:20:00.000000Z",
	"messages":[{"phase":"raised","channel":null,"attempts":1,"next_at":null,"given_up_at":"2026-11-28T11:20:01.000000Z"}]}],"channels":["mail"],"next_cursor":""}`

const (
	tookIt = `{"notice":"01a2","channel":"webhook","failed":[{"channel":"mail","error":"answered SMTP 451` + escape + `"}]}`
	noneDo = `{"notice":"01a2","channel":null,"failed":[{"channel":"mail","error":"answered SMTP 451"}]}`
)

func noticesAPI(t *testing.T) *adminClient {
	t.Helper()
	return adminAPI(t, "no such channel is configured", map[string]string{
		"GET /api/v1/admin/notices?limit=20 ":                threeNotices,
		"POST /api/v1/admin/notices/test {}":                 tookIt,
		`POST /api/v1/admin/notices/test {"channel":"mail"}`: noneDo,
	})
}

func TestAdminNotices_SayHowEachWasTold(t *testing.T) {
	client := noticesAPI(t)
	if out, err := admin(t, "notices"); err != nil || !json.Valid([]byte(out)) || !strings.Contains(out, `"state": "open"`) {
		t.Errorf("notices: %v\n%s", err, out)
	}
	var b bytes.Buffer
	l := listOf{path: "/api/v1/admin/notices", head: "NOTICED", row: noticeRow, query: url.Values{}, limit: 20}
	if err := client.printList(t.Context(), &b, l, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2026-11-30 11:20 UTC", "raised: 3 failed, next 2026-11-30 12:20 UTC", "raised by mail, recovered by webhook", "raised: given up", "source_out facilitator/x"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, b.String())
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Errorf("the table moves the cursor: %q", b.String())
	}
}

func TestAdminNotices_ATestThatNoChannelTookFails(t *testing.T) {
	noticesAPI(t)
	if out, err := admin(t, "notices", "test"); err != nil || !strings.Contains(out, `"channel": "webhook"`) {
		t.Errorf("taken: %v\n%s", err, out)
	}
	if out, err := admin(t, "notices", "test", "--channel", "mail"); !errors.Is(err, errUntold) || !strings.Contains(out, "451") {
		t.Errorf("taken by none: %v\n%s", err, out)
	}
	if _, err := admin(t, "notices", "test", "--channel", "pigeon"); err == nil || !strings.Contains(err.Error(), "no such channel") {
		t.Errorf("by a channel that there is not: %v", err)
	}
	var b bytes.Buffer
	if err := printTested(&b, json.RawMessage(tookIt), true); err != nil || !strings.HasSuffix(b.String(), "webhook took it\n") || strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Errorf("%v: %q", err, b.String())
	}
}
