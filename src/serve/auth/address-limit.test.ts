import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { createAddressLimit, networkOf } from './throttle.ts'

const rate = { burst: 10, intervalMs: 1_000 }

test('B6: addresses are forgotten in time and bounded in number', () => {
  const clock = createManualClock()
  const limit = createAddressLimit(clock, 3)
  const add = (address: string, times: number) => {
    for (let count = 0; count < times; count++) limit.add(address, rate)
  }
  add('192.0.2.1', 9)
  expect(limit.waitMs('192.0.2.1', rate)).toBe(0)
  add('::ffff:192.0.2.1', 1)
  expect(limit.waitMs('192.0.2.1', rate)).toBe(1_000)
  clock.setWall(clock.now() + 3_600_000)
  expect(limit.waitMs('192.0.2.1', rate)).toBe(1_000)
  add('192.0.2.1', 1_000)
  clock.advance(1_000)
  expect(limit.waitMs('192.0.2.1', rate)).toBe(0)
  clock.advance(9_000)
  add('192.0.2.1', 9)
  expect(limit.waitMs('192.0.2.1', rate)).toBe(0)
  limit.remove('192.0.2.1', rate)
  add('192.0.2.1', 1)
  expect(limit.waitMs('192.0.2.1', rate)).toBe(0)
  for (const address of ['a', 'b', 'c']) add(address, 10)
  add('d', 1)
  expect(['a', 'b', 'c'].map((address) => limit.waitMs(address, rate))).toEqual([0, 1_000, 1_000])
})

test('B6: an IPv6 address counts with its /64, however it is written', () => {
  const one = '2001:db8:0:0'
  for (const address of ['2001:db8::1', '2001:db8:0:0:1::', '2001:db8:0:0:1:2:3:4', '2001:db8::', '2001:db8::1%eth0']) {
    expect(networkOf(address)).toBe(one)
  }
  expect(networkOf('2001::5:6:7:8:9')).toBe('2001:0:0:5')
  expect(networkOf('::1')).toBe('0:0:0:0')
  expect(networkOf('fe80::1%lo')).toBe('fe80:0:0:0')
  expect(networkOf('::ffff:192.0.2.7')).toBe('192.0.2.7')
})
