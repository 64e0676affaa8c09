/**
 * The load generator, in a process of its own so that it shares no event loop with what is measured. One and the same
 * process serves every target of a run: its own cost is the same for all.
 */
import { type Connection, openConnection } from './connection.ts'
import type { Order } from './orders.ts'
import { runTurn } from './turn.ts'

let held: Connection[] = []

async function follow(order: Order): Promise<unknown> {
  switch (order.kind) {
    case 'run':
      return runTurn(order)
    case 'hold': {
      const { aim, connections } = order
      held = await Promise.all(Array.from({ length: connections }, () => openConnection(aim.port, aim.requests)))
      for (const connection of held) connection.send(() => {})
      return undefined
    }
    case 'release':
      for (const connection of held) connection.close()
      held = []
      return undefined
  }
}

process.on('message', (order: Order) => {
  follow(order).then(
    (answer) => process.send?.({ answer }),
    (thrown: unknown) => process.send?.({ failure: String(thrown) }),
  )
})
// Whoever started us is gone: nobody needs the load any more.
process.on('disconnect', () => process.exit(0))
