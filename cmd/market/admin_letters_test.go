package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const letterJSON = `{"id":"01a229ef-1156-7b25-96a4-0159aa667050","kind":"strike.opened","at":"2026-11-30T00:51:03.127356Z","data":{"reason":"the service failed\u001b[31m"},
	"channels":[{"channel":"email","state":"sent","attempts":1},{"channel":"webhook","state":"given_up","attempts":8,"error":"answered HTTP 500: no"}]}`

func TestAdmin_Notices_SaysWhatArrivedAndSendsAgain(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI())
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, letterJSON)
			return
		}
		_, _ = io.WriteString(w, `{"items":[`+letterJSON+`],"next_cursor":"more"}`)
	}))
	defer server.Close()
	t.Setenv("MARKET_ADMIN_TOKEN", "the-token-of-the-test")
	t.Setenv("MARKET_PUBLIC_URL", server.URL)
	out, err := admin(t, "services", "notices", "weather", "--limit", "5")
	var printed struct{ Items []json.RawMessage }
	if err != nil || json.Unmarshal([]byte(out), &printed) != nil || len(printed.Items) != 1 {
		t.Errorf("%v, %s", err, out)
	}
	if _, err := admin(t, "services", "notices", "resend", "weather", "01a229ef-1156-7b25-96a4-0159aa667050"); err != nil {
		t.Error(err)
	}
	want := []string{"GET /api/v1/services/weather/notices?limit=5", "POST /api/v1/services/weather/notices/01a229ef-1156-7b25-96a4-0159aa667050/resend"}
	if strings.Join(asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked %q, want %q", asked, want)
	}
	row, err := letterRow([]byte(letterJSON))
	if want := "2026-11-30 00:51 UTC\tstrike.opened\tthe service failed?[31m\temail sent; webhook given up (attempt 8: answered HTTP 500: no)\t01a229ef-1156-7b25-96a4-0159aa667050"; err != nil || row != want {
		t.Errorf("%v, %q, want %q", err, row, want)
	}
}
