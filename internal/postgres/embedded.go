package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Embedded says where a private server lives. It listens on a unix socket only, which nobody but its own account and root can reach,
// and it ends with the program that started it.
type Embedded struct {
	// Dir holds the cluster: it is created, or made by an earlier start. Any other directory that is not empty is refused.
	Dir string
	// BinDir holds initdb and postgres; empty: they are looked for, and downloaded where there are none.
	BinDir string
	// Download says from where and to where; the zero value is the public repository and the user's cache.
	Download Download
	// Settings of the server that differ from its defaults, which keep what was committed through a power loss. Tests trade that for
	// speed.
	Settings map[string]string
}

// A Server is a running embedded server.
type Server struct {
	url     string
	bin     binaries
	process *os.Process
	done    chan struct{} // closed when the process is gone, after exit is set
	exit    error
	cluster *cluster
	closing sync.Once
}

// startTimeout bounds a start, crash recovery included.
const startTimeout = 2 * time.Minute

// After a crash the processes of the earlier server may hold its shared memory a little longer, and a new one refuses to start beside
// them.
const (
	attemptsMax = 20
	retryAfter  = 250 * time.Millisecond
)

// quitPatience is how long a server that was told to stop at once may take before it is killed.
const quitPatience = 10 * time.Second

// StartEmbedded starts the private server and returns when it accepts connections. Its errors are ErrForeignDirectory,
// ErrDirectoryInUse, ErrOtherMajor and ErrNoBinaries, or what the system said. The caller stops the server.
func StartEmbedded(ctx context.Context, e Embedded) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if e.Dir == "" {
		return nil, errors.New("embedded database: no data directory")
	}
	as, err := serverAccount()
	if err != nil {
		return nil, fmt.Errorf("embedded database: %w", err)
	}
	c, err := openCluster(e.Dir, as)
	if err != nil {
		return nil, fmt.Errorf("embedded database: %w", err)
	}
	s, err := startIn(ctx, c, e)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("embedded database: %w", err)
	}
	return s, nil
}

func startIn(ctx context.Context, c *cluster, e Embedded) (*Server, error) {
	bin, err := e.binaries(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := c.claim(bin.major); err != nil {
		return nil, err
	}
	if err := c.initialize(ctx, bin, e.Settings["fsync"] != "off"); err != nil {
		return nil, err
	}
	if c.sockets, err = c.socketDir(); err != nil {
		return nil, err
	}
	crashed, err := c.stopOrphan(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"-D", c.path(dataName), "-k", c.sockets, "-p", "5432",
		"-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-c", "logging_collector=off"}
	for _, name := range slices.Sorted(maps.Keys(e.Settings)) {
		args = append(args, "-c", name+"="+e.Settings[name])
	}
	for attempt := 1; ; attempt++ {
		s, err := c.launch(ctx, bin, args, socketURL(c.sockets))
		if err == nil || !crashed || attempt == attemptsMax || !errors.Is(err, errEnded) {
			return s, err
		}
		if err := pause(ctx, retryAfter); err != nil {
			return nil, err
		}
	}
}

// binaries are those that are there, or downloaded ones: where there are none, and for a cluster that was made with them before another
// version was installed.
func (e Embedded) binaries(ctx context.Context, c *cluster) (binaries, error) {
	bin, err := findBinaries(ctx, c.as, e.BinDir, c.major)
	none := errors.Is(err, ErrNoBinaries)
	if none || (err == nil && e.BinDir == "" && bin.major != c.major && c.major == downloadMajor) {
		return e.Download.binaries(ctx, c.as)
	}
	return bin, err
}

func socketURL(dir string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}
	return u.String()
}

// URL is the connection URL of the server's database.
func (s *Server) URL() string { return s.url }

// Major is the major version of Postgres.
func (s *Server) Major() int { return s.bin.major }

// Done is closed when the server is gone, whoever ended it.
func (s *Server) Done() <-chan struct{} { return s.done }

// release gives the directory back once the server is gone.
func (s *Server) release() {
	_ = os.Remove(s.cluster.sockets) // empty, or what is in it is not ours
	s.cluster.close()
}

// Stop ends the server and returns when it is gone. Open transactions are rolled back. When ctx ends first the server is told to stop at
// once, as after a crash: nothing that was committed is lost. It may be called again.
func (s *Server) Stop(ctx context.Context) error {
	defer s.closing.Do(s.release)
	_ = s.process.Signal(syscall.SIGINT) // gone already: Done says so
	select {
	case <-s.done:
		return s.exit
	case <-ctx.Done():
	}
	_ = s.process.Signal(syscall.SIGQUIT)
	patience := time.NewTimer(quitPatience)
	defer patience.Stop()
	select {
	case <-s.done:
	case <-patience.C:
		_ = s.process.Kill()
		<-s.done
	}
	return fmt.Errorf("embedded database stopped at once: %w", ctx.Err())
}
