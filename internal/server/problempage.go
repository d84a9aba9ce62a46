package server

import (
	"net/http"
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
	Money    string // what became of it, on the way of a call; empty elsewhere, where there is none
}

// paidWay says whether a request is a call, or wants to be one.
func paidWay(r *http.Request) bool { return onPaidWay(r.URL.Path) }

func onPaidWay(path string) bool {
	return strings.HasPrefix(path, "/s/") || strings.HasPrefix(path, "/try/")
}

// problemPage shows a problem, on the way to a service where it has to do with one.
func (s *Server) problemPage(p problem, path, service string) problemPage {
	page := problemPage{frame: s.frame(), Status: strconv.Itoa(p.Status), Headline: p.Title, Code: p.Code,
		Detail: strings.TrimSuffix(plain(upperFirst(p.Detail)), "."), Next: "Search above for what you need, or look up a call."}
	page.Unlisted = true
	switch {
	case !onPaidWay(path):
	case p.Charged == false:
		page.Money = "Nothing was charged."
	case p.Charged == outcomePending:
		page.Money = "Whether your payment was taken is not known yet: find it by its nonce, and sign no other one."
	}
	if service != "" && s.catalog.Current().Has(service) {
		page.Service = service
	}
	switch p.Code {
	case call.NotFound:
		page.Headline = "There is nothing here"
		if strings.HasPrefix(path, "/calls/") {
			page.Headline = "Nothing is known by this"
			page.Next = "A request that was refused before its payment was taken leaves no call. Find a call by the transaction or the nonce of its payment."
		}
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
