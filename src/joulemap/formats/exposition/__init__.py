"""Scraped metrics: Prometheus text and Redfish."""
