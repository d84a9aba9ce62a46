package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// B140, B146: also where a handler falls over, before it could say anything.
func TestCORS_AnAnswerToAPanicIsReadableAndKeptByNobody(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	// This server has no catalog to look into.
	newTestServer().Public().Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/s/weather/v1", nil))
	if answer.Code != http.StatusInternalServerError || answer.Header().Get("Content-Type") != typeProblem {
		t.Errorf("%d, %s", answer.Code, answer.Header().Get("Content-Type"))
	}
	for _, header := range manners {
		if got := answer.Header().Values(header[0]); len(got) != 1 || got[0] != header[1] {
			t.Errorf("%s is %q, want %q", header[0], got, header[1])
		}
	}
}
