import { expect, test } from 'vitest'
import type { Served } from '../../core/access.ts'
import { entryOf } from '../../core/call.fixture.ts'
import type { Exposure } from '../../core/exposure.ts'
import { tokenAccount } from '../../core/tokens.ts'

const tool = (length: number): Served => ({ name: 'x'.repeat(length), entry: entryOf(), definition: {} })
const lists = {
  direct: [tool(400), tool(400)],
  meta: [tool(80)],
  both: [tool(400), tool(400), tool(80)],
  code: [tool(40)],
}
const seenAs = (own: Exposure) => tokenAccount({ shown: (exposure = own) => lists[exposure] })

test('B8: the cost of listed tools is compared with that of all tools, and savings are never negative', () => {
  expect(seenAs('meta')).toEqual({ direct: 200, exposed: 20, saved: 180 })
  expect(seenAs('code')).toEqual({ direct: 200, exposed: 10, saved: 190 })
  expect(seenAs('direct')).toEqual({ direct: 200, exposed: 200, saved: 0 })
  expect(seenAs('both')).toEqual({ direct: 200, exposed: 220, saved: 0 })
})
