import { once } from 'node:events'
import { createGateway, defineTool } from 'toolway'
import * as z from 'zod'

const shelf: Readonly<Record<string, number>> = { apples: 3, pears: 0 }

const stock = defineTool({
  name: 'stock',
  description: 'Tells how many of a product are in stock.',
  inputSchema: z.object({ product: z.string().describe('Name of the product.') }),
  readOnly: true,
  handler: ({ product }) => ({ product, count: shelf[product] ?? 0 }),
})

await using gateway = await createGateway({
  config: {
    stores: { path: './data' },
    agents: {
      shop: { allow: { tools: { native: ['stock'] } } },
      guest: { allow: { tools: { native: ['hash'] } } },
    },
  },
  tools: [stock],
})

const { structuredContent } = await gateway.call('native__stock', { product: 'apples' }, { agent: 'shop' })
console.log(`shop sells ${structuredContent?.count} ${structuredContent?.product}`)

const refused = await gateway.call('native__stock', { product: 'apples' }, { agent: 'guest' }).catch((error) => error)
console.log(refused.code)

if (process.argv.includes('--serve')) {
  const { url } = await gateway.listen()
  console.log(`serving ${url}, with the token in data/token`)
  await once(process, 'SIGINT')
}
