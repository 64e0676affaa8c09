import { expect, test } from 'vitest'
import { networkOf } from './throttle.ts'

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
