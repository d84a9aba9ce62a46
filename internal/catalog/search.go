package catalog

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
)

// A Page is one page of a list.
type Page struct {
	Services []*Service // shared with the snapshot: not to be changed
	Next     string     // the cursor of the next page; empty after the last
	Total    int        // how many services fit, on all pages together
}

// A hit is a service that fits, with its key in the order of the list: the higher, the earlier.
type hit struct {
	service *Service
	key     int
}

// Search returns a page of the services that fit a query. score says how well a service delivers, the higher the better.
//
// The order is total and, but for ByRecord, no service's place in it depends on another service or on time. So whoever follows the cursors to the
// end has seen every service once that was there all the while. By record, a service whose record changes meanwhile may be seen twice or missed.
func (s *Snapshot) Search(q Query, score func(service uuid.UUID) int) Page {
	var hits []hit
	for _, v := range s.indexed() {
		if !v.fits(q) {
			continue
		}
		relevance, found := v.relevance(q.words)
		if !found {
			continue
		}
		h := hit{service: v.service}
		switch q.Sort {
		case ByAge:
		case ByRelevance:
			h.key = relevance
		case ByRecord:
			h.key = score(v.service.ID)
		}
		hits = append(hits, h)
	}
	slices.SortFunc(hits, func(a, b hit) int { return order(a, position{key: b.key, id: b.service.ID}) })
	page := Page{Total: len(hits)}
	if q.after.given {
		from, _ := slices.BinarySearchFunc(hits, q.after, func(h hit, after position) int {
			if order(h, after) <= 0 {
				return -1
			}
			return 1
		})
		hits = hits[from:]
	}
	if len(hits) > q.Limit {
		hits = hits[:q.Limit]
		page.Next = q.cursorAfter(hits[q.Limit-1])
	}
	for _, h := range hits {
		page.Services = append(page.Services, h.service)
	}
	return page
}

// order compares by falling key, and then by age: ids are in the order of creation.
func order(h hit, p position) int {
	if h.key != p.key {
		return cmp.Compare(p.key, h.key)
	}
	return bytes.Compare(h.service.ID[:], p.id[:])
}

// An indexedService is a service with the texts that are searched, in lower case.
type indexedService struct {
	service     *Service
	slug        string
	name        string
	description string
	endpoints   string
	cheapest    decimal.Decimal
	priced      bool
}

// indexed returns all services in the order of their ids. The texts are made when somebody searches the snapshot for the first time.
func (s *Snapshot) indexed() []indexedService {
	s.index.Do(func() {
		s.searchable = make([]indexedService, 0, len(s.byID))
		for _, service := range s.byID {
			s.searchable = append(s.searchable, indexOf(service))
		}
		slices.SortFunc(s.searchable, func(a, b indexedService) int { return bytes.Compare(a.service.ID[:], b.service.ID[:]) })
	})
	return s.searchable
}

func indexOf(service *Service) indexedService {
	v := indexedService{service: service, slug: service.Slug, name: strings.ToLower(service.Name), description: strings.ToLower(service.Description)}
	var texts []string
	for _, e := range service.Endpoints {
		if e.Retired {
			continue
		}
		texts = append(texts, strings.ToLower(e.Path), strings.ToLower(e.Description))
	}
	v.cheapest, v.priced = service.Cheapest()
	v.endpoints = strings.Join(texts, "\n")
	return v
}

func (v indexedService) fits(q Query) bool {
	switch {
	case v.service.State != q.Status:
		return false
	case q.Offered != nil && !v.service.offers(q.Offered):
		return false
	case q.Tag != "" && !slices.Contains(v.service.Tags, q.Tag):
		return false
	case q.MaxUSD != nil && (!v.priced || v.cheapest.GreaterThan(*q.MaxUSD)):
		return false
	}
	return true
}

// offers says whether one of the endpoints that are on the shelf has a price like that.
func (s *Service) offers(like func(Price) bool) bool {
	return slices.ContainsFunc(s.Endpoints, func(e *Endpoint) bool {
		price, priced := e.Price()
		return priced && !e.Retired && like(price)
	})
}

// What a word is worth where it is found. A word in the name says most about a service.
const (
	worthTag         = 12
	worthSlug        = 10
	worthName        = 8
	worthNameInside  = 5
	worthDescription = 2
	worthEndpoint    = 1
)

// relevance says how well a service fits; false where one of the words is found nowhere.
func (v indexedService) relevance(words []string) (sum int, found bool) {
	for _, word := range words {
		worth := v.worth(word)
		if worth == 0 {
			return 0, false
		}
		sum += worth
	}
	return sum, true
}

func (v indexedService) worth(word string) int {
	switch {
	case slices.Contains(v.service.Tags, word):
		return worthTag
	case v.slug == word:
		return worthSlug
	case strings.HasPrefix(v.name, word), strings.Contains(v.name, " "+word):
		return worthName
	case strings.Contains(v.name, word), strings.Contains(v.slug, word):
		return worthNameInside
	case strings.Contains(v.description, word), slices.ContainsFunc(v.service.Tags, func(tag string) bool { return strings.HasPrefix(tag, word) }):
		return worthDescription
	case strings.Contains(v.endpoints, word):
		return worthEndpoint
	}
	return 0
}

// Cheapest returns the lowest current price of a service's endpoints; false where none has one.
func (s *Service) Cheapest() (usd decimal.Decimal, priced bool) {
	for _, e := range s.Endpoints {
		price, ok := e.Price()
		if ok && !e.Retired && e.Broken == "" && (!priced || price.USD.LessThan(usd)) {
			usd, priced = price.USD, true
		}
	}
	return usd, priced
}
