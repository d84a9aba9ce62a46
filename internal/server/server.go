package server

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/identity"
	"market/internal/payout"
	"market/internal/plan"
	"market/internal/postgres"
	"market/internal/readiness"
	"market/internal/switches"
)

// Limits of the two listeners. A paid request may take long, so there is no write timeout from its start: the path has deadlines of its
// own, and writing the answer has writeTime.
const (
	headerTime     = 10 * time.Second
	bodyTime       = 30 * time.Second
	writeTime      = time.Minute
	idleTime       = 2 * time.Minute
	headerBytesMax = 64 << 10
)

// Config is what a Server is built from.
type Config struct {
	Path       *delivery.Path
	Review     *delivery.Review
	Guard      *delivery.Guard
	DB         *pgxpool.Pool
	Catalog    *catalog.Catalog
	Secrets    catalog.Secrets
	Rules      catalog.Rules // of what may be listed
	Upstream   Upstream
	Ready      *readiness.Keeper
	Networks   []chain.Network
	Proxies    []netip.Prefix // whose forwarded headers count
	AdminToken string         // empty: nobody is an admin
	PublicURL  string         // without a trailing slash
	Dev        bool           // development mode, which every page says
	Cooldown   time.Duration  // how long a service rests after a failure, for the page of rules
	Log        zerolog.Logger
	Now        func() time.Time
	Stopping   func() bool      // the process takes no new calls
	Sources    delivery.Sources // nil: none is configured
	// Waiting counts the refunds that wait for each source; nil: none does.
	Waiting func(ctx context.Context, db postgres.DB) (map[string]int, error)
	Metrics http.Handler // of the operations door; nil: it has none
	Notices Notices      // to the operator; nil: there is no channel
	// Switches are those of the operator that are on, as this process knows them; nil: it has no use for them.
	Switches *switches.Board
	// Reconcile holds the chain against the books now; nil: nothing is reconciled here.
	Reconcile func(ctx context.Context) error
	SignIns   *identity.SignIns
	Plans     plan.Table // of the accounts that list services
	Payouts   *payout.Maker
}

// Server is the public door and the operations door.
type Server struct {
	path       *delivery.Path
	review     *delivery.Review
	guard      *delivery.Guard
	db         *pgxpool.Pool
	catalog    *catalog.Catalog
	secrets    catalog.Secrets
	rules      catalog.Rules
	upstream   Upstream
	store      catalog.Store
	ready      *readiness.Keeper
	networks   []chain.Network
	proxies    []netip.Prefix
	adminToken string
	publicURL  string
	dev        bool
	cooldown   time.Duration
	scores     *delivery.Scoreboard
	log        zerolog.Logger
	now        func() time.Time
	stopping   func() bool
	sources    delivery.Sources
	waiting    func(ctx context.Context, db postgres.DB) (map[string]int, error)
	metrics    http.Handler
	notices    Notices
	switches   *switches.Board
	reconcile  func(ctx context.Context) error
	identities identity.Store
	signIns    *identity.SignIns
	payouts    *payout.Maker
	tries      tries // to sign in with the admin token
	challenges tries
	entries    tries // to sign in with a wallet
	badTokens  tries
	goodTokens known
	writes     triesOf[uuid.UUID] // changes of accounts
	ourForms   *http.CrossOriginProtection
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{
		path: c.Path, review: c.Review, guard: c.Guard, db: c.DB, catalog: c.Catalog, secrets: c.Secrets, rules: c.Rules, upstream: c.Upstream, ready: c.Ready, networks: c.Networks,
		proxies:    c.Proxies,
		adminToken: c.AdminToken, publicURL: c.PublicURL, dev: c.Dev, cooldown: c.Cooldown, log: c.Log, now: c.Now, stopping: c.Stopping,
		sources: c.Sources, waiting: c.Waiting, metrics: c.Metrics, notices: c.Notices, switches: c.Switches, reconcile: c.Reconcile,
		ourForms: ourForms(c.PublicURL), signIns: c.SignIns, payouts: c.Payouts, store: catalog.Store{Plans: c.Plans},
		challenges: tries{max: challengesMax}, entries: tries{max: signInsMax}, badTokens: tries{max: badTokensMax},
		writes: triesOf[uuid.UUID]{max: writesMax, window: writesWindow},
	}
	s.scores = delivery.NewScoreboard(c.DB, c.Now, func(err error) { s.log.Error().Err(err).Msg("records of services") })
	return s
}

// Public returns the public door; its listener is to be Readable.
func (s *Server) Public() *http.Server {
	d := door(s.routes())
	// "OPTIONS *" is a preflight like any other.
	d.DisableGeneralOptionsHandler = true
	tellConn(d)
	return d
}

// callMethods are the verbs that a service may sell. OPTIONS is none: it is the preflight of all others.
var callMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Ops returns the operations door: for the operator's network, never for the public.
func (s *Server) Ops() *http.Server {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	e.GET("/livez", func(c echo.Context) error { return c.String(http.StatusOK, "alive\n") })
	e.GET("/readyz", s.readyz)
	if s.metrics != nil {
		e.GET("/metrics", echo.WrapHandler(s.metrics))
	}
	return door(e)
}

func door(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytesMax}
}

// keepPanic hands a panic to the log line of its request, with the stack; the caller gets a bare 500.
func keepPanic(c echo.Context, err error, stack []byte) error {
	return &panicked{err: err, stack: stack}
}

type panicked struct {
	err   error
	stack []byte
}

func (p *panicked) Error() string { return "panic: " + p.err.Error() + "\n" + string(p.stack) }
func (p *panicked) Unwrap() error { return p.err }

// index shows a person what is for sale, and tells a program what this is and where to go.
func (s *Server) index(c echo.Context) error {
	c.Response().Header().Set("Vary", "Accept")
	if wantsPage(c.Request()) {
		return s.writeCatalog(c)
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]string{
		"name":        "market",
		"description": "a marketplace of HTTP APIs that are paid per call over HTTP 402 (x402)",
		"services":    s.publicURL + "/api/v1/services",
		"call":        s.publicURL + "/s/{service}/{path}",
		"try":         s.publicURL + "/try/{service}/{path}",
		"rules":       s.publicURL + "/api/v1/rules",
		"openapi":     s.publicURL + "/openapi.json",
	})
}
