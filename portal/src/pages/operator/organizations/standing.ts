export const TONES = { active: 'good', suspended: 'danger', closing: 'warn', closed: 'plain' } as const
export const WORDS = { active: 'Active', suspended: 'Suspended', closing: 'Closing', closed: 'Closed' }
