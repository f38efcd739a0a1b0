import '@testing-library/jest-dom/vitest'
import { cleanup, configure } from '@testing-library/react'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { reset } from '#mock/db'
import { server } from '#mock/server'
import { setCsrfToken, setSignedOutHandler } from '@/api'

// Awaited conditions may take long if many tests share the processor.
configure({ asyncUtilTimeout: 10_000 })

// Every unit test uses the development server's mock service. An unknown call is a failure.
beforeAll(() => server.listen({ onUnhandledRequest: 'error' }))
afterEach(() => {
  cleanup()
  server.resetHandlers()
  reset()
  setCsrfToken(null)
  setSignedOutHandler(() => undefined)
})
afterAll(() => server.close())
