package crashtest

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
	"market/internal/call"
)

// The server is told to stop while it waits for a service: whoever paid gets its answer, the call is recorded, and the process ends well.
func TestDrain_ACallUnderWayEndsBeforeTheServerDoes(t *testing.T) {
	t.Parallel()
	s := &stage{world: newWorld(t), name: "drain"}
	s.start(t, "")
	asked, release := make(chan struct{}), make(chan struct{})
	s.set(t, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		apptest.Works(w, r)
	})
	got := make(chan reply, 1)
	go func() { got <- s.send(t.Context()) }()
	<-asked
	if err := s.server.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody else is let in", func() bool {
		response, err := http.Get(s.URL + "/") //nolint:noctx // it ends with the server
		if err == nil {
			_ = response.Body.Close()
		}
		return err != nil
	})
	close(release)
	if r := <-got; r.status != http.StatusOK {
		t.Errorf("the caller got %+v, want its answer", r)
	}
	<-s.server.Ended
	if code := s.server.State().ExitCode(); code != 0 {
		t.Errorf("the server ended with %d, want 0:\n%s", code, s.server.Said())
	}
	if e := s.look(t); e.state != call.StateServed || e.in != 1 || e.out != 0 || e.asked != 1 {
		t.Errorf("the call is %s, want it served", e)
	}
	const replicasSQL = `SELECT count(*) FROM replicas`
	var replicas int
	if err := s.DB.QueryRow(t.Context(), replicasSQL).Scan(&replicas); err != nil || replicas != 0 {
		t.Errorf("%d replicas say that they run (%v)", replicas, err)
	}
}
