package desk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/rs/zerolog"

	"market/internal/accesslog"
	"market/internal/payment"
)

// Deadlines. There is no write timeout from the start of a request: a settlement takes its time, and writing the answer has writeTime.
const (
	headerTime     = 10 * time.Second
	bodyTime       = 15 * time.Second
	writeTime      = 30 * time.Second
	idleTime       = 2 * time.Minute
	headerBytesMax = 16 << 10
	// verifyTime bounds a verification. It ends before bodyTime does: net/http ends the request's context with its read deadline, and our answer
	// would be lost.
	verifyTime = 12 * time.Second
	// settleTime is less than the 90 s that the official clients wait, so that they get settlement_pending with its transaction from us
	// rather than nothing from their own clock.
	settleTime = 75 * time.Second
)

// Config is what a Desk is built from.
type Config struct {
	DB         *pgxpool.Pool
	Rails      []Rail
	Keys       []Key
	Signer     string        // address of the gas account, which sends the transactions
	SettleTime time.Duration // 0: settleTime
	Log        zerolog.Logger
}

// Desk answers the three routes.
type Desk struct {
	db         *pgxpool.Pool
	rates      Rates
	sales      Sales
	undone     Undone
	rails      []Rail
	keys       []Key
	settleTime time.Duration
	supported  supported
	log        zerolog.Logger
}

// New returns a desk.
func New(c Config) *Desk {
	d := &Desk{db: c.DB, rails: c.Rails, keys: c.Keys, settleTime: c.SettleTime, log: c.Log, supported: supportedBy(c.Rails, c.Signer)}
	if d.settleTime == 0 {
		d.settleTime = settleTime
	}
	return d
}

// Public is the door.
func (d *Desk) Public() *http.Server {
	return &http.Server{Handler: d.routes(), ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytesMax}
}

// routes are the whole API.
func (d *Desk) routes() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = writeStray
	e.Pre(unhurried)
	e.Use(accesslog.Requests(d.log, entryOf), middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: keepPanic}))
	e.GET("/supported", d.listSupported)
	e.POST("/verify", d.verify)
	e.POST("/settle", d.settle)
	return e
}

// keepPanic hands a panic to the log line of its request, with the stack; the caller gets a bare 500.
func keepPanic(_ echo.Context, err error, stack []byte) error {
	return fmt.Errorf("panic: %w\n%s", err, stack)
}

// unhurried takes back the deadline that the answer before on this connection was written under.
func unhurried(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{}) // as in writeJSON
		return next(c)
	}
}

// verify says whether a payment would go through now. It moves nothing.
func (d *Desk) verify(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), verifyTime)
	defer cancel()
	rq, err := d.admit(ctx, c)
	if err == nil {
		err = d.check(ctx, rq)
	}
	return writeVerification(c, rq, err)
}

func (d *Desk) check(ctx context.Context, rq request) error {
	rail, found, err := d.identify(rq)
	if err != nil {
		return err
	}
	signed := found.Signed
	if err := vouch(ctx, rail, found); err != nil {
		return err
	}
	if err := checkLife(ctx, rail, signed); err != nil {
		return err
	}
	if _, err := d.refuseUndone(ctx, rail, signed); err != nil {
		return err
	}
	if err := simulate(ctx, rail, signed); err != nil {
		return err
	}
	return d.sales.Verified(ctx, d.db, rail.Network.ID, signed)
}

// admit lets a request in: a key, within its rate, a body that can be read, a recipient that the key may settle to. In this order, so that a
// stranger costs us a hash and no more.
func (d *Desk) admit(ctx context.Context, c echo.Context) (request, error) {
	key, ok := keyOf(c.Request().Header, d.keys)
	if !ok {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="market facilitator"`)
		return request{}, &refused{status: http.StatusUnauthorized, code: codeUnauthorized, message: "Send Authorization: Bearer with an API key of this facilitator."}
	}
	l := logOf(c)
	l.key = key.Name
	wait, within, err := d.rates.Take(ctx, d.db, key)
	if err != nil {
		return request{}, err
	}
	if !within {
		return request{}, &refused{status: http.StatusTooManyRequests, code: codeRate, message: "This key has made all requests of its minute.", wait: wait}
	}
	body, err := readBody(c.Request().Body)
	switch {
	case errors.Is(err, errTooLarge):
		return request{}, &refused{status: http.StatusRequestEntityTooLarge, code: payment.CodePayload, message: "The body is larger than 64 KiB."}
	case err != nil:
		return request{}, &refused{status: http.StatusBadRequest, code: payment.CodePayload, message: "The body did not arrive.", err: err}
	}
	rq, err := decode(body)
	if err != nil {
		return request{}, err
	}
	l.network, l.payer = rq.required.Network, payerOf(rq)
	if !key.Allows(rq.required.PayTo) {
		return rq, &refused{status: http.StatusForbidden, code: codeRecipient, message: "This key may not settle to paymentRequirements.payTo."}
	}
	return rq, nil
}
