package notify

const (
	// MoneyDiffers is that what the chain says of a treasury and what we say differ; its subject is the wallet, with what differs.
	MoneyDiffers Kind = "money_differs"
	// MoneyStopsNetwork is that nobody new is asked to pay on a network, because money differs there; its subject is the network.
	MoneyStopsNetwork Kind = "money_stops_network"
	// MoneyUnexplained is that money came in that belongs to no call; its subject is the wallet.
	MoneyUnexplained Kind = "money_unexplained"
)
