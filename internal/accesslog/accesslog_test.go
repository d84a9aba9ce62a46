package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"
)

// An operator is alarmed by lines of level error, so whoever hangs up may not write one.
func TestRequests_AFaultIsAnErrorAndACallerThatLeavesIsNot(t *testing.T) {
	t.Parallel()
	canceled := fmt.Errorf("find call: %w", context.Canceled)
	tests := map[string]struct {
		leaves bool
		entry  Entry
		panics bool
		want   string
	}{
		"a good answer":                             {want: "info"},
		"an error that is not ours":                 {entry: Entry{Err: errors.New("bad input")}, want: "info"},
		"a fault":                                   {entry: Entry{Fault: true, Err: errors.New("the database is gone")}, want: "error"},
		"a fault of a request whose caller left":    {leaves: true, entry: Entry{Fault: true, Err: errors.New("the database is gone")}, want: "error"},
		"a request that ended as its caller left":   {leaves: true, entry: Entry{Fault: true, Err: canceled}, want: "left"},
		"a cancellation that is not of the caller":  {entry: Entry{Fault: true, Err: canceled}, want: "error"},
		"a handler that panics":                     {panics: true, want: "error"},
		"an answer that was cut short on purpose":   {panics: true, entry: Entry{Aborted: true, Err: errors.New("the service broke off")}, want: "info"},
		"one that was cut short by a fault of ours": {panics: true, entry: Entry{Aborted: true, Fault: true, Err: errors.New("the database is gone")}, want: "error"},
		"one that panics when its caller left":      {leaves: true, panics: true, entry: Entry{Fault: true, Err: canceled}, want: "error"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			e := echo.New()
			e.Use(Requests(zerolog.New(&log), func(echo.Context) Entry { return tt.entry }))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			e.GET("/", func(c echo.Context) error {
				if tt.leaves {
					leave()
				}
				if tt.panics {
					panic("a panic of the tests")
				}
				return c.NoContent(http.StatusInternalServerError)
			})
			func() {
				defer func() { _ = recover() }()
				e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			}()
			var line struct {
				Level      string
				CallerLeft bool `json:"caller_left"`
			}
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatalf("%s: %v", log.Bytes(), err)
			}
			got := line.Level
			if line.CallerLeft {
				got = "left"
			}
			if got != tt.want || line.CallerLeft && line.Level != "info" {
				t.Errorf("logged %s, want %s", log.Bytes(), tt.want)
			}
		})
	}
}

func TestRequests_TheLineSaysWhatWasAskedAndWhatTheDoorAdds(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := echo.New()
	e.Use(Requests(zerolog.New(&log), func(echo.Context) Entry {
		return Entry{Fields: map[string]string{"service": "weather", "payer": ""}, Err: errors.New("why")}
	}))
	e.POST("/s/*", func(c echo.Context) error { return c.NoContent(http.StatusTeapot) })
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/s/weather/secret?key=1", nil))
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if _, timed := line["ms"].(float64); !timed {
		t.Errorf("logged %s without the time it took", log.Bytes())
	}
	delete(line, "ms")
	want := map[string]any{"level": "info", "message": "request", "method": "POST", "route": "/s/*", "status": 418.0, "service": "weather", "error": "why"}
	if fmt.Sprint(line) != fmt.Sprint(want) {
		t.Errorf("logged %v, want %v", line, want)
	}
}
