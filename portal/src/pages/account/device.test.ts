import { expect, it } from 'vitest'
import { deviceOf } from './device'

it.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  [
    'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140 Safari/537.36 Edg/140',
    'Edge on Windows',
  ],
  ['Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19 Safari/604', 'Safari on iOS'],
  ['curl/8.5', 'curl'],
  ['', 'Unknown device'],
])('calls %s by browser and system', (userAgent, device) => {
  expect(deviceOf(userAgent)).toBe(device)
})
