package server

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/delivery"
	"market/internal/strikes"
)

// listStrikes serves GET /api/v1/admin/strikes: the services that carry strikes in the order in which they are to be looked at, a page of them, and
// what of them would count at the next failure.
func (s *Server) listStrikes(c echo.Context) error {
	page, err := readPage(c)
	if err != nil {
		return err
	}
	offset, ok := readOffset(page.cursor)
	if !ok {
		return badParameter("cursor", "is not one that we gave out")
	}
	if err := page.limited(); err != nil {
		return err
	}
	queue, err := s.path.Recorder.StrikesOfAll(c.Request().Context(), offset, page.limit)
	if err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, strikePageOf(queue, offset))
}

// strikePageOf shows a page of the queue that begins at an offset.
func strikePageOf(queue delivery.StrikeQueue, offset int) strikePage {
	view := strikePage{Items: make([]strikeView, 0, len(queue.Strikes)), Services: make([]summaryView, 0, len(queue.Services)), Total: queue.Total}
	of := map[uuid.UUID][]strikes.Strike{}
	for _, v := range queue.Strikes {
		of[v.Service] = append(of[v.Service], v)
	}
	for _, v := range queue.Services {
		view.Services = append(view.Services, summaryViewOf(v, of[v.Service]))
		for _, st := range of[v.Service] {
			view.Items = append(view.Items, strikeViewOf(v.Slug, st, true))
		}
	}
	if next := offset + len(queue.Services); next < queue.Total {
		view.Next = writeOffset(next)
	}
	return view
}

// strikesBySlug serves GET /api/v1/admin/strikes/{slug}: everything that is known of the strikes of one service.
func (s *Server) strikesBySlug(c echo.Context) error { return s.writeStrikes(c, true) }

// providersStrikes serves GET /api/v1/services/{slug}/strikes: the same as its provider may see it, which is not where exactly its callers are, nor
// which process of ours asked.
func (s *Server) providersStrikes(c echo.Context) error { return s.writeStrikes(c, false) }

func (s *Server) writeStrikes(c echo.Context, whole bool) error {
	ctx := c.Request().Context()
	service, err := s.store.Find(ctx, s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	found, err := s.path.Recorder.StrikesOf(ctx, service.ID)
	if err != nil {
		return err
	}
	view := serviceStrikesView{Summary: summaryViewOf(found.Summary, found.Strikes), Items: make([]strikeView, 0, len(found.Strikes)),
		Delistings: make([]delistingView, 0, len(found.Delistings))}
	for _, v := range found.Strikes {
		view.Items = append(view.Items, strikeViewOf(service.Slug, v, whole))
	}
	for _, d := range found.Delistings {
		view.Delistings = append(view.Delistings, delistingViewOf(d))
	}
	if err := s.beside(ctx, service.ID, &view); err != nil {
		return err
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, view)
}

// The cursor of the queue is a place in it: what is shown next is what stands there by then.
const offsetPrefix = "q:"

func writeOffset(offset int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(offsetPrefix + strconv.Itoa(offset)))
}

func readOffset(cursor string) (int, bool) {
	if cursor == "" {
		return 0, true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	digits, ours := strings.CutPrefix(string(text), offsetPrefix)
	offset, numeric := strconv.Atoi(digits)
	return offset, err == nil && ours && numeric == nil && 0 < offset && offset < 1<<20
}
