import { describe, expect, it } from 'vitest'
import { inWords, namesIn, rightsFor, scopesOf, usualFor } from './scopes'

describe('scopes of a key', () => {
  it('are on all groups, or on those that are named', () => {
    expect(scopesOf(['append', 'read'], [])).toEqual(['append', 'read'])
    expect(scopesOf(['append', 'billing'], ['orders', 'pay-*'])).toEqual(['append:orders', 'append:pay-*', 'billing'])
  })

  it('are about administration for the organization alone', () => {
    expect(rightsFor('project').map(({ right }) => right)).not.toContain('administer')
    expect(rightsFor(null).map(({ right }) => right)).toContain('administer')
    expect(usualFor(null)).toEqual(['administer', 'append', 'manage', 'read'])
    expect(scopesOf(['administer', 'manage'], ['team-*'])).toEqual(['administer', 'manage:team-*'])
  })

  it('take names by comma or line, each once', () => {
    expect(namesIn(' orders, pay-*\norders ,, ')).toEqual(['orders', 'pay-*'])
    expect(namesIn('')).toEqual([])
  })

  it('are said in few words', () => {
    expect(inWords(['append', 'read'])).toEqual(['append, read'])
    expect(inWords(['append:orders', 'append:pay-*', 'read:orders', 'read:pay-*'])).toEqual([
      'append, read: orders, pay-*',
    ])
    expect(inWords(['append:a:b', 'billing', 'read'])).toEqual(['append: a:b', 'billing, read'])
  })
})
