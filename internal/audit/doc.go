// Package audit keeps who decided what, why, and how things stood before and after. Entries are only added: the database refuses to change or to
// delete one.
//
// It knows neither strikes nor services: whoever decides says in JSON what stood before and after. An entry is written in the transaction of what it
// tells, so neither is there without the other. Times are the database's (market_now()).
package audit
