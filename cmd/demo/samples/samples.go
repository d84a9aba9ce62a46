// Package samples is what two providers of the demo run, and their listings. Conformance tests read the same ones.
package samples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Services are what two providers would run: one that works, and one that answers its probe and fails at its work.
type Services struct {
	server *http.Server
	url    string
	ended  chan error
}

const (
	weatherPrice = "0.002"
	hoursPrice   = "0.003"
	oraclePrice  = "0.005"
)

// Start starts the services on a free port.
func Start() (*Services, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the sample services: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /weather/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /weather/v1/current", weather)
	mux.HandleFunc("GET /weather/v1/hours", hours)
	mux.HandleFunc("GET /oracle/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /oracle/v1/answer", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the oracle has lost its crystal ball", http.StatusInternalServerError)
	})
	s := &Services{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		url:    "http://" + l.Addr().String(),
		ended:  make(chan error, 1),
	}
	go func() { s.ended <- s.server.Serve(l) }()
	return s, nil
}

// weather invents the same weather for the same city.
func weather(w http.ResponseWriter, r *http.Request) {
	var in struct {
		City string `json:"city"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in); err != nil {
		http.Error(w, "want {\"city\": …}", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"city": in.City, "temp_c": tempOf(in.City)}) // the caller left, if this fails
}

func tempOf(city string) int {
	temp := 8
	for _, letter := range city {
		temp = (temp*31 + int(letter)) % 35
	}
	return temp
}

// hours streams the weather of the next hours as server-sent events, one after the other.
func hours(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(hoursEvery)
	defer tick.Stop()
	for hour := range 5 {
		_, _ = fmt.Fprintf(w, "data: {\"in_hours\":%d,\"temp_c\":%d}\n\n", hour, tempOf(r.URL.Query().Get("city"))-hour) // as above
		_ = http.NewResponseController(w).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

const hoursEvery = 500 * time.Millisecond

// Close stops them.
func (s *Services) Close(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// Listings is the seeded catalog.
func (s *Services) Listings() []map[string]any {
	return []map[string]any{
		{
			"slug": "weather", "name": "Weather", "description": "Current weather by city", "tags": []string{"data", "sample"},
			"base_url": s.url + "/weather", "probe": map[string]any{"method": "GET", "path": "/healthz", "statuses": []string{"200-299"}},
			"endpoints": []any{map[string]any{
				"method": "POST", "path": "/v1/current", "price_usd": weatherPrice, "description": "Current weather of a city",
				"input_schema": map[string]any{"type": "object", "required": []string{"city"},
					"properties": map[string]any{"city": map[string]any{"type": "string", "minLength": 1}}},
				"input_example": map[string]any{"city": "Lima"}, "output_example": map[string]any{"city": "Lima", "temp_c": 19},
				"trial_calls_per_day": 5,
			}, map[string]any{
				"method": "GET", "path": "/v1/hours", "price_usd": hoursPrice, "description": "Weather of the next hours, as it is worked out",
				"input_example": map[string]any{"city": "Lima"}, "stream": true, "trial_calls_per_day": 5,
			}},
		},
		{
			"slug": "oracle", "name": "Oracle", "description": "A sample of a service that takes the call and fails", "tags": []string{"sample"},
			"base_url": s.url + "/oracle", "probe": map[string]any{"method": "GET", "path": "/healthz", "statuses": []string{"200-299"}},
			"endpoints": []any{map[string]any{
				"method": "GET", "path": "/v1/answer", "price_usd": oraclePrice, "description": "Answers with an error, always",
			}},
		},
	}
}
