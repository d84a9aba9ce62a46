package server

import (
	"context"

	"github.com/google/uuid"

	"market/internal/audit"
	"market/internal/delivery"
)

// appealsShown is how many appeals about a service stand beside its strikes; all of them have a list of their own.
const appealsShown = 20

// beside puts what was said and decided about the strikes of a service beside their evidence.
func (s *Server) beside(ctx context.Context, service uuid.UUID, view *serviceStrikesView) error {
	ids, names := make([]uuid.UUID, len(view.Items)), make([]string, len(view.Items))
	for i, v := range view.Items {
		ids[i], names[i] = v.ID, v.ID.String()
	}
	decisions, err := audit.Store{}.Latest(ctx, s.db, audit.KindStrike, names)
	if err != nil {
		return err
	}
	appeals, err := delivery.AppealsOf(ctx, s.db, ids)
	if err != nil {
		return err
	}
	for i := range view.Items {
		v := &view.Items[i]
		if e, decided := decisions[v.ID.String()]; decided {
			v.Decision = &answeredView{Action: e.Action, At: timeJSON(e.At), By: e.By, Reason: e.Reason}
		}
		for _, a := range appeals[v.ID] {
			v.Appeals = append(v.Appeals, appealViewOf(a))
		}
	}
	about, err := delivery.AppealsAbout(ctx, s.db, service, appealsShown)
	if err != nil {
		return err
	}
	view.Appeals = make([]appealView, 0, len(about))
	for _, a := range about {
		view.Appeals = append(view.Appeals, appealViewOf(a))
	}
	return nil
}
