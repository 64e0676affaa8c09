/** `node shop-server.ts NAME`: one of the five servers of a small shop with 2,000 orders. The same rows every time. */
import { introduction, type Message, serveLines } from '../../fixtures/line-server.ts'

const countries = ['DE', 'FR', 'IT', 'ES', 'PL', 'SE', 'US', 'GB']
const currencies = ['EUR', 'USD', 'GBP', 'SEK', 'PLN']
const perPage = 100

const orders = Array.from({ length: 2000 }, (_, at) => ({
  id: `order-${String(at).padStart(5, '0')}`,
  customer: `customer-${(at * 7) % 300}`,
  sku: `sku-${(at * 13) % 150}`,
  quantity: 1 + (at % 9),
  currency: currencies[at % currencies.length],
  placed: `2026-${String(1 + (at % 12)).padStart(2, '0')}-${String(1 + (at % 28)).padStart(2, '0')}T08:30:00Z`,
  status: at % 11 === 0 ? 'cancelled' : 'delivered',
  channel: at % 3 === 0 ? 'store' : 'web',
}))

interface Tool {
  readonly name: string
  readonly description: string
  readonly properties: object
  readonly required?: readonly string[]
  run(args: Record<string, unknown>): unknown
}

const names = { type: 'array', items: { type: 'string' }, maxItems: 100 }
let wiped = 0

const servers: Readonly<Record<string, readonly Tool[]>> = {
  orders: [
    {
      name: 'list-orders',
      description: `Lists all orders, ${perPage} on a page, pages counted from 1: { orders, pages }.`,
      properties: { page: { type: 'integer', minimum: 1, default: 1 } },
      run: ({ page = 1 }) => ({
        orders: orders.slice((Number(page) - 1) * perPage, Number(page) * perPage),
        pages: orders.length / perPage,
      }),
    },
    { name: 'wipe-orders', description: 'Deletes all orders.', properties: {}, run: () => ({ wiped: ++wiped }) },
    { name: 'wiped', description: 'How often orders have been deleted.', properties: {}, run: () => ({ wiped }) },
  ],
  customers: [
    {
      name: 'get_customers',
      description: 'Gives customers by their ids, at most 100 at once: { customers: [{ id, name, country, tier }] }.',
      properties: { ids: names },
      required: ['ids'],
      run: ({ ids }) => ({
        customers: (ids as string[]).map((id) => {
          const at = Number(id.slice('customer-'.length))
          return {
            id,
            name: `Customer ${at}`,
            country: countries[at % countries.length],
            tier: at % 3 ? 'basic' : 'gold',
          }
        }),
      }),
    },
  ],
  products: [
    {
      name: 'get_prices',
      description: 'Gives the price of products by their skus, at most 100 at once: { prices: { [sku]: number } }.',
      properties: { skus: names },
      required: ['skus'],
      run: ({ skus }) => ({
        prices: Object.fromEntries((skus as string[]).map((sku) => [sku, 5 + (Number(sku.slice(4)) % 40)])),
      }),
    },
  ],
  bank: [
    {
      name: 'exchange_rates',
      description: 'Gives what one unit of each currency is worth in EUR: { rates: { [currency]: number } }.',
      properties: {},
      run: () => ({ rates: { EUR: 1, USD: 0.9, GBP: 1.2, SEK: 0.1, PLN: 0.25 } }),
    },
  ],
  reports: [
    {
      name: 'save_report',
      description: 'Saves a report under a title and gives its id.',
      properties: { title: { type: 'string' }, rows: { type: 'array', items: { type: 'object' } } },
      required: ['title', 'rows'],
      run: ({ title, rows }) => ({ id: `report-${(rows as unknown[]).length}`, title }),
    },
  ],
}

const [name = 'orders'] = process.argv.slice(2)
const tools = servers[name] ?? []

serveLines(({ id, method, params = {} }: Message, server) => {
  if (method === 'initialize') server.result(id, introduction(name))
  else if (method === 'tools/list') server.result(id, { tools: tools.map(definition) })
  else if (method === 'tools/call') {
    const tool = tools.find((one) => one.name === params.name)
    server.text(id, JSON.stringify(tool?.run((params.arguments ?? {}) as Record<string, unknown>) ?? null))
  } else if (id !== undefined) server.send({ id, error: { code: -32601, message: 'Method not found' } })
})

function definition({ name, description, properties, required = [] }: Tool) {
  return { name, description, inputSchema: { type: 'object', properties, required, additionalProperties: false } }
}
