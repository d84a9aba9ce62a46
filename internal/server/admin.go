package server

import (
	"io"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/refusal"
)

// bodyMax bounds what the API reads; a listing is at most this long.
const bodyMax = 1 << 20

func readBody(c echo.Context) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, bodyMax))
	if err != nil {
		return nil, refusal.New(call.InputTooLarge, "the body did not arrive whole, or is larger than %d bytes", bodyMax).WithCause(err)
	}
	return body, nil
}

func idParam(c echo.Context) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.UUID{}, refusal.New(call.NotFound, "there is no such id")
	}
	return id, nil
}
