import { z } from 'zod'

// The content security policy forbids evaluating strings as code, so the validator must not try. It decides when a schema
// is made, which modules do as they are loaded: `main.tsx` imports this one first.
z.config({ jitless: true })
