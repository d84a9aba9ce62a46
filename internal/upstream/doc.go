// Package upstream talks to the services that providers sell: it asks one for a caller (Client.Ask, or Client.Stream for an answer that is passed on as it comes), looks whether one lives (Prober),
// and says from the type of what went wrong, or from the status of what came back, whose doing it was. Nothing reads an error's text. Where
// neither type nor status can tell, canaries are asked. To an owner it tells where a host leads (Client.Vet) and how a probe went (Client.Check).
//
// It never follows a redirect, never uses a proxy of the environment, and looks names up itself: it connects only to addresses of an answer
// in which every address is public. What goes from caller to service and back are allow-lists (headers.go), so that a header nobody thought of stays here.
//
// It keeps no books: what an outcome does to money, strikes or cooldowns is the caller's business.
//
// Units: sizes in bytes, waits as time.Duration.
package upstream
