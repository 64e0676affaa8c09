import { describe, expect, test } from 'vitest'
import type { ApprovalView } from '../../../../src/admin/contract.ts'
import { endedShownMs, type ListedApproval, updateListed } from './held-approvals.ts'

const approval = (id: string) => ({ id }) as ApprovalView
const shown = (listed: readonly ListedApproval[]) =>
  listed.map(({ approval: { id }, endedAt }) => (endedAt === undefined ? id : `${id} ended`))

describe('V8: the list of approvals does not move under the pointer', () => {
  const first = updateListed([], [approval('a'), approval('b')], { now: 0, inUse: false })

  test('V8: an approval that ended stays in its place while the list is in use, and new ones are added below', () => {
    const next = updateListed(first, [approval('c'), approval('b')], { now: 1000, inUse: true })
    expect(shown(next)).toEqual(['a ended', 'b', 'c'])
    const later = updateListed(next, [approval('c'), approval('b')], { now: 60_000, inUse: true })
    expect(shown(later)).toEqual(['a ended', 'b', 'c'])
    expect(shown(updateListed(later, [approval('b')], { now: 60_001, inUse: false }))).toEqual(['b', 'c ended'])
  })

  test('V8: an approval that ended stays for some seconds while nobody uses the list', () => {
    const next = updateListed(first, [approval('b')], { now: 1000, inUse: false })
    expect(shown(next)).toEqual(['a ended', 'b'])
    const before = updateListed(next, [approval('b')], { now: 999 + endedShownMs, inUse: false })
    expect(shown(before)).toEqual(['a ended', 'b'])
    expect(shown(updateListed(before, [approval('b')], { now: 1000 + endedShownMs, inUse: false }))).toEqual(['b'])
  })

  test('V8: an approval that is reported again waits again', () => {
    const next = updateListed(first, [], { now: 1000, inUse: false })
    expect(shown(updateListed(next, [approval('a')], { now: 2000, inUse: false }))).toEqual(['a', 'b ended'])
  })
})
