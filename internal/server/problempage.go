package server

import (
	"strconv"
	"strings"

	"market/internal/call"
)

// A problemPage tells a person what a problem document tells a program.
type problemPage struct {
	frame
	Status   string
	Headline string
	Detail   string
	Code     call.Reason
	Next     string
	Service  string // the slug of the service that was called; empty where there is none
}

// problemPage shows a problem, on the way to a service where it has to do with one.
func (s *Server) problemPage(p problem, service string) problemPage {
	page := problemPage{frame: s.frame(), Status: strconv.Itoa(p.Status), Headline: p.Title, Code: p.Code,
		Detail: strings.TrimSuffix(plain(upperFirst(p.Detail)), "."), Next: "Search above for what you need, or look up a call."}
	page.Unlisted = true
	if service != "" && s.catalog.Current().Has(service) {
		page.Service = service
	}
	switch p.Code {
	case call.NotFound:
		page.Headline = "There is nothing here"
	case call.MethodNotAllowed:
		page.Next = "This address is for programs, which call it in another way than a browser does."
	case call.Internal:
		page.Headline = "Something went wrong on our side"
		page.Next = "Try again in a moment."
	case call.NotReady, call.NotLive, call.InCooldown:
		page.Next = "Try again later. Nobody is asked to pay in the meantime."
	}
	return page
}
