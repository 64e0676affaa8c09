/** The task of the story: what gold customers have spent in 2026, by country, in EUR; the best three, saved as a report. */
export const task = 'revenue of orders by customers of a country, prices, exchange rates, save a report'

export const javascript = `
const first = await tools.orders.list_orders({ page: 1 })
const pages = await Promise.all(Array.from({ length: first.pages - 1 }, (_, at) => tools.orders.list_orders({ page: at + 2 })))
const orders = [first, ...pages].flatMap((page) => page.orders).filter((order) => order.status === 'delivered')
const parts = (all) => { const set = [...new Set(all)]; return Array.from({ length: Math.ceil(set.length / 100) }, (_, at) => set.slice(at * 100, at * 100 + 100)) }
const [customers, prices, { rates }] = await Promise.all([
  Promise.all(parts(orders.map((order) => order.customer)).map((ids) => tools.customers.get_customers({ ids }))),
  Promise.all(parts(orders.map((order) => order.sku)).map((skus) => tools.products.get_prices({ skus }))),
  tools.bank.exchange_rates(),
])
const who = new Map(customers.flatMap((answer) => answer.customers).map((customer) => [customer.id, customer]))
const price = Object.assign({}, ...prices.map((answer) => answer.prices))
const sums = {}
for (const order of orders) {
  const { tier, country } = who.get(order.customer)
  if (tier === 'gold') sums[country] = (sums[country] ?? 0) + order.quantity * price[order.sku] * rates[order.currency]
}
const rows = Object.entries(sums).map(([country, eur]) => ({ country, eur: Math.round(eur) })).sort((a, b) => b.eur - a.eur).slice(0, 3)
const report = await tools.reports.save_report({ title: 'Gold 2026', rows })
;({ report: report.id, rows })
`

export const python = `
first = call_tool("orders.list-orders", {"page": 1})
pages = call_tools([("orders.list-orders", {"page": page}) for page in range(2, first["pages"] + 1)])
orders = [order for page in [first, *pages] for order in page["orders"] if order["status"] == "delivered"]

def parts(values):
    values = list(dict.fromkeys(values))
    return [values[at : at + 100] for at in range(0, len(values), 100)]

customers = call_tools([("customers", "get_customers", {"ids": ids}) for ids in parts(o["customer"] for o in orders)])
prices = call_tools([("products.get_prices", {"skus": skus}) for skus in parts(o["sku"] for o in orders)])
rates = call_tool("bank", "exchange_rates")["rates"]
who = {customer["id"]: customer for answer in customers for customer in answer["customers"]}
price = {sku: cost for answer in prices for sku, cost in answer["prices"].items()}
sums = {}
for order in orders:
    customer = who[order["customer"]]
    if customer["tier"] == "gold":
        eur = order["quantity"] * price[order["sku"]] * rates[order["currency"]]
        sums[customer["country"]] = sums.get(customer["country"], 0) + eur
rows = sorted(({"country": c, "eur": round(eur)} for c, eur in sums.items()), key=lambda row: -row["eur"])[:3]
report = call_tool("reports", "save_report", title="Gold 2026", rows=rows)
{"report": report["id"], "rows": rows}
`
