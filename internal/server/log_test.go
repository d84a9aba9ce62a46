package server

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

	"market/internal/call"
)

// An operator is alarmed by lines of level error, so whoever hangs up may not write one.
func TestLogRequests_AFaultIsAnErrorAndACallerThatLeavesIsNot(t *testing.T) {
	t.Parallel()
	canceled := fmt.Errorf("find call: %w", context.Canceled)
	tests := map[string]struct {
		leaves    bool
		err       error
		wantLevel string
	}{
		"a fault":                                  {false, errors.New("the database is gone"), "error"},
		"a fault of a request whose caller left":   {true, errors.New("the database is gone"), "error"},
		"a request that ended as its caller left":  {true, canceled, "info"},
		"a cancellation that is not of the caller": {false, canceled, "error"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			e := echo.New()
			e.Use(logRequests(zerolog.New(&log)))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			e.GET("/", func(c echo.Context) error {
				if tt.leaves {
					leave()
				}
				l := logOf(c)
				l.reason, l.err = call.Internal, tt.err
				return c.NoContent(http.StatusInternalServerError)
			})
			e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			var line struct {
				Level      string
				CallerLeft bool `json:"caller_left"`
			}
			if err := json.Unmarshal(log.Bytes(), &line); err != nil {
				t.Fatalf("%s: %v", log.Bytes(), err)
			}
			if left := tt.wantLevel == "info"; line.Level != tt.wantLevel || line.CallerLeft != left {
				t.Errorf("logged %s, want level %s", log.Bytes(), tt.wantLevel)
			}
		})
	}
}
