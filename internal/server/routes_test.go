package server

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRoutes_OnlyWhatExistsAsksForTheToken(t *testing.T) {
	t.Parallel()
	public := newTestServer().Public().Handler
	for request, want := range map[string]int{
		"POST /api/v1/services":                 401,
		"DELETE /api/v1/services/x":             401,
		"PUT /api/v1/services/x/headers":        401,
		"PATCH /api/v1/services/x/headers":      401,
		"POST /api/v1/services/x/secret":        401,
		"GET /api/v1/services/x/secret":         405,
		"POST /api/v1/services/x/endpoints":     401,
		"PATCH /api/v1/services/x/endpoints/1":  401,
		"DELETE /api/v1/services/x/endpoints/1": 401,
		"GET /api/v1/admin/strikes":             401,
		"GET /api/v1/admin/strikes/x":           401,
		"GET /api/v1/services/x/strikes":        401,
		"GET /api/v1/nothing":                   404,
		"GET /api/v1":                           404,
		"PUT /api/v1/services":                  405,
		"POST /api/v1/calls/x":                  405,

		"GET /api/v1/services/x/notices":           401,
		"POST /api/v1/services/x/notices/secret":   401,
		"POST /api/v1/services/x/notices/1/resend": 401,
	} {
		method, path, _ := strings.Cut(request, " ")
		answer := httptest.NewRecorder()
		public.ServeHTTP(answer, httptest.NewRequest(method, path, nil))
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", request, answer.Code, want)
		}
	}
}
