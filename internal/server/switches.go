package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/refusal"
	"market/internal/switches"
)

// A switchView is how one switch stands.
type switchView struct {
	Kind    switches.Kind `json:"kind"`
	Network *string       `json:"network"` // null: there is one of its kind
	On      bool          `json:"on"`
	Reason  *string       `json:"reason"` // null, as the next two: nobody has ever set it
	By      *string       `json:"by"`
	Since   *string       `json:"since"`
	Stops   string        `json:"stops"`
	GoesOn  string        `json:"goes_on"`
}

// switchWords say what a switch stops while it is on, and what goes on all the same.
var switchWords = map[switches.Kind]struct{ stops, goesOn string }{
	switches.Stop402: {
		"Nobody new is asked to pay on this network, and no new paid call is begun there. An endpoint that is sold on another network too is sold there alone; where there is no other, callers get " +
			"503 not_ready within a second or so.",
		"Calls that are under way end, and are served or refunded as always. A payment that is known is answered by what became of it. Refunds and trial calls go on. Callers are told that the " +
			"operator has stopped payments, and not why.",
	},
	switches.StopPayouts: {
		"No payout is signed or sent, on every process. One that was sent before may still arrive, and is followed until it has.",
		"Everything else: calls, refunds and what providers earn. Payouts are made and wait; they are sent when this is off again.",
	},
	switches.SuspendStrikes: {
		"No failed call is a strike or starts a cooldown, nobody is delisted, and nothing is held for a review. That holds for every failure that is recorded from then on, on every process, and none of them " +
			"counts later, when strikes count again.",
		"Failures are measured, told as what they were and refunded. A success still clears strikes. Strikes and cooldowns that are there stay, and what an admin decides about them. A service that " +
			"is broken goes on failing callers, who get their money back.",
	},
}

func switchViewOf(s switches.Switch) switchView {
	v := switchView{Kind: s.Kind, On: s.On, Reason: orNull(s.Reason), By: orNull(s.By), Since: timeOrNull(s.Since), Network: orNull(s.Subject)}
	v.Stops, v.GoesOn = switchWords[s.Kind].stops, switchWords[s.Kind].goesOn
	return v
}

// readSwitches reads how every switch stands: those that can be set, in the order of their kinds and networks, and after them those of networks that are
// not configured any more.
func (s *Server) readSwitches(ctx context.Context) ([]switches.Switch, error) {
	set, err := switches.Store{}.All(ctx, s.db)
	if err != nil {
		return nil, err
	}
	var all []switches.Switch
	add := func(name switches.Name) {
		at := slices.IndexFunc(set, func(s switches.Switch) bool { return s.Name == name })
		if at < 0 {
			all = append(all, switches.Switch{Name: name})
			return
		}
		all = append(all, set[at])
		set = slices.Delete(set, at, at+1)
	}
	for _, kind := range switches.Kinds() {
		if !kind.PerNetwork() {
			add(switches.Name{Kind: kind})
			continue
		}
		for _, n := range s.networks {
			add(switches.Name{Kind: kind, Subject: n.ID})
		}
	}
	return append(all, set...), nil
}

// listSwitches serves GET /api/v1/admin/switches.
func (s *Server) listSwitches(c echo.Context) error {
	all, err := s.readSwitches(c.Request().Context())
	if err != nil {
		return err
	}
	views := make([]switchView, 0, len(all))
	for _, each := range all {
		views = append(views, switchViewOf(each))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"items": views})
}

// setSwitch serves POST /api/v1/admin/switches.
func (s *Server) setSwitch(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	order, err := readSwitchOrder(body)
	if err != nil {
		return err
	}
	set, err := s.switchTo(c, order)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, switchViewOf(set))
}

// A switchOrder is what somebody wants a switch to be, and why.
type switchOrder struct {
	name   switches.Name
	on     bool
	reason string
}

const switchForm = `expected {"stop_402": network, "on": true or false, "reason": text}, or with "stop_payouts": true or "suspend_strikes": true in the first place`

// readSwitchOrder reads the body of a request that sets a switch. Which one it is stands in the member that has its name.
func readSwitchOrder(body []byte) (order switchOrder, err error) {
	var sent struct {
		Stop402        *string `json:"stop_402"`
		StopPayouts    *bool   `json:"stop_payouts"`
		SuspendStrikes *bool   `json:"suspend_strikes"`
		On             *bool   `json:"on"`
		Reason         *string `json:"reason"`
	}
	if err := decodeOne(body, &sent); err != nil {
		return switchOrder{}, refusal.New(call.InvalidRequest, "/ "+switchForm)
	}
	named := 0
	name := func(given bool, n switches.Name) {
		if given {
			named, order.name = named+1, n
		}
	}
	name(sent.Stop402 != nil, switches.Name{Kind: switches.Stop402})
	name(sent.StopPayouts != nil && *sent.StopPayouts, switches.Name{Kind: switches.StopPayouts})
	name(sent.SuspendStrikes != nil && *sent.SuspendStrikes, switches.Name{Kind: switches.SuspendStrikes})
	switch {
	case sent.StopPayouts != nil && !*sent.StopPayouts || sent.SuspendStrikes != nil && !*sent.SuspendStrikes:
		return switchOrder{}, refusal.New(call.InvalidRequest, "/ a switch is named by true, and set by /on: %s", switchForm)
	case named != 1:
		return switchOrder{}, refusal.New(call.InvalidRequest, "/ names %d switches, and has to name one: %s", named, switchForm)
	case sent.On == nil:
		return switchOrder{}, refusal.New(call.InvalidRequest, "/on is missing: %s", switchForm)
	}
	if sent.Stop402 != nil {
		order.name.Subject = *sent.Stop402
	}
	order.on = *sent.On
	order.reason, err = reasonOf(sent.Reason)
	return order, err
}

// reasonOf checks a reason as that of every decision is checked.
func reasonOf(reason *string) (string, error) {
	members := map[string]string{}
	if reason != nil {
		members["reason"] = *reason
	}
	body, err := json.Marshal(members)
	if err != nil {
		return "", err
	}
	return catalog.ParseReason(body)
}

// switchTo sets a switch. One of a network that is not configured can only be switched off, where it is on still.
func (s *Server) switchTo(c echo.Context, order switchOrder) (switches.Switch, error) {
	ctx := c.Request().Context()
	if order.name.Kind.PerNetwork() && !slices.ContainsFunc(s.networks, func(n chain.Network) bool { return n.ID == order.name.Subject }) {
		set, err := switches.Store{}.All(ctx, s.db)
		if err != nil {
			return switches.Switch{}, err
		}
		if order.on || !slices.ContainsFunc(set, func(each switches.Switch) bool { return each.Name == order.name }) {
			return switches.Switch{}, refusal.New(call.InvalidRequest, "/%s is no network that is configured here: it is the CAIP-2 name of one, such as eip155:8453", order.name.Kind)
		}
	}
	done, err := delivery.SetSwitch(ctx, s.db, order.name, order.on, authorOf(c), order.reason)
	if err != nil {
		return switches.Switch{}, err
	}
	s.reloadSwitches(c)
	return done.Switch, nil
}

// switchesOn are those that are on, as this process knows them.
func (s *Server) switchesOn() []switches.Switch {
	if s.switches == nil {
		return nil
	}
	return s.switches.On()
}

// reloadSwitches has this process know of what it has just set. The others hear of it by a notification, as this one does, too.
func (s *Server) reloadSwitches(c echo.Context) {
	if s.switches == nil {
		return
	}
	if err := s.switches.Load(c.Request().Context(), s.db); err != nil {
		s.log.Error().Err(err).Msg("switches not reloaded; a notification does")
	}
}
