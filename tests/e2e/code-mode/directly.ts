import type { Conversation } from './conversation.ts'

interface Order {
  readonly customer: string
  readonly sku: string
  readonly quantity: number
  readonly currency: string
  readonly status: string
}

/** The same task as a model does it without programs: every row goes through its context, and it adds them up itself. */
export async function directly({ call }: Conversation): Promise<{ report: string; rows: object[] }> {
  const orders: Order[] = []
  for (let page = 1, pages = 1; page <= pages; page++) {
    const answer = await call<{ orders: Order[]; pages: number }>('orders__list-orders', { page })
    pages = answer.pages
    orders.push(...answer.orders.filter(({ status }) => status === 'delivered'))
  }
  const who = new Map<string, { tier: string; country: string }>()
  for (const ids of parts(orders.map(({ customer }) => customer))) {
    type Customers = { customers: { id: string; tier: string; country: string }[] }
    const { customers } = await call<Customers>('customers__get_customers', { ids })
    for (const customer of customers) who.set(customer.id, customer)
  }
  const price: Record<string, number> = {}
  for (const skus of parts(orders.map(({ sku }) => sku))) {
    Object.assign(price, (await call<{ prices: object }>('products__get_prices', { skus })).prices)
  }
  const { rates } = await call<{ rates: Record<string, number> }>('bank__exchange_rates', {})
  const sums: Record<string, number> = {}
  for (const { customer, sku, quantity, currency } of orders) {
    const { tier, country } = who.get(customer) ?? { tier: '', country: '' }
    if (tier === 'gold') sums[country] = (sums[country] ?? 0) + quantity * (price[sku] ?? 0) * (rates[currency] ?? 0)
  }
  const all = Object.entries(sums).map(([country, eur]) => ({ country, eur: Math.round(eur) }))
  const rows = all.sort((a, b) => b.eur - a.eur).slice(0, 3)
  const { id } = await call<{ id: string }>('reports__save_report', { title: 'Gold 2026', rows })
  return { report: id, rows }
}

function parts(values: readonly string[]): string[][] {
  const different = [...new Set(values)]
  return Array.from({ length: Math.ceil(different.length / 100) }, (_, at) => different.slice(at * 100, at * 100 + 100))
}
